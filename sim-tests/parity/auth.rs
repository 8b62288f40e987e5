//! Users and roles.

use leasehold::etcd::{
    AuthClient, Client, Permission, PermissionType, RoleRevokePermissionOptions, UserAddOptions,
};

use super::{Named, header};

pub(super) async fn users(client: &Client) -> Named {
    let mut auth: AuthClient = client.auth_client().clone();
    header!(auth.auth_enable().await?);
    header!(auth.auth_disable().await?);
    let mut token = auth.authenticate("name".to_owned(), "password".to_owned()).await?;
    let _: &str = token.token();
    header!(token);
    const _: UserAddOptions = UserAddOptions::new();
    let options = UserAddOptions::new().with_no_pwd();
    header!(auth.user_add("name", "password", Some(options)).await?);
    let mut user = auth.user_get("name").await?;
    let _: &[String] = user.roles();
    header!(user);
    let mut users = auth.user_list().await?;
    let _: &[String] = users.users();
    header!(users);
    header!(auth.user_delete("name").await?);
    header!(auth.user_change_password("name", "password").await?);
    header!(auth.user_grant_role("name", "role").await?);
    header!(auth.user_revoke_role("name", "role").await?);
    Ok(())
}

pub(super) async fn roles(client: &Client) -> Named {
    let mut auth = client.auth_client();
    header!(auth.role_add("role").await?);
    header!(auth.role_delete("role").await?);
    let mut role = auth.role_get("role").await?;
    let _: Vec<Permission> = role.permissions();
    header!(role);
    let mut roles = auth.role_list().await?;
    let _: &[String] = roles.roles();
    header!(roles);
    header!(auth.role_grant_permission("role", Permission::read("key")).await?);
    const _: RoleRevokePermissionOptions = RoleRevokePermissionOptions::new();
    let options = RoleRevokePermissionOptions::new()
        .with_range_end("end")
        .with_prefix()
        .with_from_key()
        .with_all_keys();
    header!(auth.role_revoke_permission("role", "key", Some(options)).await?);
    Ok(())
}

pub(super) async fn shortcuts(mut client: Client) -> Named {
    let _ = client.auth_enable().await?;
    let _ = client.auth_disable().await?;
    let _ = client.role_add("role").await?;
    let _ = client.role_delete("role").await?;
    let _ = client.role_get("role").await?;
    let _ = client.role_list().await?;
    let _ = client.role_grant_permission("role", Permission::write("key")).await?;
    let _ = client.role_revoke_permission("role", "key", None).await?;
    let _ = client.user_add("name", "password", None).await?;
    let _ = client.user_get("name").await?;
    let _ = client.user_list().await?;
    let _ = client.user_delete("name").await?;
    let _ = client.user_change_password("name", "password").await?;
    let _ = client.user_grant_role("name", "role").await?;
    let _ = client.user_revoke_role("name", "role").await?;
    Ok(())
}

/// A permission says what it was made of.
#[test]
fn permissions_are_values() {
    let permission = Permission::new(PermissionType::Write, "key").with_range_end("kez");
    assert_eq!((permission.key(), permission.range_end()), (&b"key"[..], &b"kez"[..]));
    assert_eq!(permission.key_str().ok(), Some("key"));
    assert_eq!(permission.range_end_str().ok(), Some("kez"));
    assert_eq!(permission.get_type(), i32::from(PermissionType::Write));
    assert!(!permission.is_prefix() && !permission.is_from_key());
    assert!(permission == Permission::write("key"));
    assert!(Permission::read("key") != Permission::read_write("key"));
    assert!(Permission::read("key").with_prefix().is_prefix());
    assert!(Permission::read("key").with_prefix().with_from_key().is_from_key());
    let all = Permission::read("key").with_all_keys();
    assert!(all == Permission::read("\0").with_from_key());
    assert_eq!(all.key(), b"");
}
