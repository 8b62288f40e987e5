//! Users and roles: not simulated. Permissions are values that can be built and read.

use super::{
    Client, Extent, KeyRange,
    absent::{absent_responses, not_simulated_calls},
    error::Result,
};

/// The client of the auth service. All its calls answer Unimplemented.
#[derive(Debug, Clone)]
pub struct AuthClient {
    // Not to be built outside, as in etcd-client.
    _private: (),
}

impl AuthClient {
    pub(super) const fn new() -> Self {
        AuthClient { _private: () }
    }
}

not_simulated_calls!([AuthClient] {
    authenticate(name: String, password: String) -> AuthenticateResponse = "authentication";
});

not_simulated_calls!([AuthClient, Client] {
    auth_enable() -> AuthEnableResponse = "auth";
    auth_disable() -> AuthDisableResponse = "auth";
    role_add(name: impl Into<String>) -> RoleAddResponse = "roles";
    role_delete(name: impl Into<String>) -> RoleDeleteResponse = "roles";
    role_get(name: impl Into<String>) -> RoleGetResponse = "roles";
    role_list() -> RoleListResponse = "roles";
    role_grant_permission(name: impl Into<String>, perm: Permission)
        -> RoleGrantPermissionResponse = "roles";
    role_revoke_permission(
        name: impl Into<String>,
        key: impl Into<Vec<u8>>,
        options: Option<RoleRevokePermissionOptions>
    ) -> RoleRevokePermissionResponse = "roles";
    user_add(
        name: impl Into<String>,
        password: impl Into<String>,
        options: Option<UserAddOptions>
    ) -> UserAddResponse = "users";
    user_get(name: impl Into<String>) -> UserGetResponse = "users";
    user_list() -> UserListResponse = "users";
    user_delete(name: impl Into<String>) -> UserDeleteResponse = "users";
    user_change_password(name: impl Into<String>, password: impl Into<String>)
        -> UserChangePasswordResponse = "users";
    user_grant_role(name: impl Into<String>, role: impl Into<String>)
        -> UserGrantRoleResponse = "users";
    user_revoke_role(name: impl Into<String>, role: impl Into<String>)
        -> UserRevokeRoleResponse = "users";
});

absent_responses! {
    /// The answer to enabling auth.
    #[derive(Debug, Default, Clone)]
    AuthEnableResponse {}
    /// The answer to disabling auth.
    #[derive(Debug, Default, Clone)]
    AuthDisableResponse {}
    /// The answer to an authentication.
    #[derive(Debug, Default, Clone)]
    AuthenticateResponse { token: String }
    /// The answer to adding a role.
    #[derive(Debug, Clone)]
    RoleAddResponse {}
    /// The answer to deleting a role.
    #[derive(Debug, Clone)]
    RoleDeleteResponse {}
    /// The answer to asking for a role.
    #[derive(Debug, Clone)]
    RoleGetResponse { permissions: Vec<Permission> }
    /// The list of roles.
    #[derive(Debug, Clone)]
    RoleListResponse { roles: Vec<String> }
    /// The answer to granting a role a permission.
    #[derive(Debug, Clone)]
    RoleGrantPermissionResponse {}
    /// The answer to revoking a role's permission.
    #[derive(Debug, Clone)]
    RoleRevokePermissionResponse {}
    /// The answer to adding a user.
    #[derive(Debug, Clone)]
    UserAddResponse {}
    /// The answer to asking for a user.
    #[derive(Debug, Clone)]
    UserGetResponse { roles: Vec<String> }
    /// The list of users.
    #[derive(Debug, Clone)]
    UserListResponse { users: Vec<String> }
    /// The answer to deleting a user.
    #[derive(Debug, Clone)]
    UserDeleteResponse {}
    /// The answer to changing a password.
    #[derive(Debug, Clone)]
    UserChangePasswordResponse {}
    /// The answer to granting a user a role.
    #[derive(Debug, Clone)]
    UserGrantRoleResponse {}
    /// The answer to revoking a user's role.
    #[derive(Debug, Clone)]
    UserRevokeRoleResponse {}
}

impl AuthenticateResponse {
    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl RoleGetResponse {
    /// The permissions of the role.
    pub fn permissions(&self) -> Vec<Permission> {
        self.permissions.clone()
    }
}

impl RoleListResponse {
    /// The names of the roles.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }
}

impl UserGetResponse {
    /// The names of the user's roles.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }
}

impl UserListResponse {
    /// The names of the users.
    pub fn users(&self) -> &[String] {
        &self.users
    }
}

/// What a permission allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PermissionType {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    Readwrite,
}

/// A permission of a role.
#[derive(Debug, Clone)]
pub struct Permission {
    kind: PermissionType,
    key: Vec<u8>,
    range: KeyRange,
}

impl Permission {
    /// A permission on one key.
    pub fn new(perm_type: PermissionType, key: impl Into<Vec<u8>>) -> Self {
        Permission { kind: perm_type, key: key.into(), range: KeyRange::new() }
    }

    /// To read a key.
    pub fn read(key: impl Into<Vec<u8>>) -> Self {
        Self::new(PermissionType::Read, key)
    }

    /// To write a key.
    pub fn write(key: impl Into<Vec<u8>>) -> Self {
        Self::new(PermissionType::Write, key)
    }

    /// To read and write a key.
    pub fn read_write(key: impl Into<Vec<u8>>) -> Self {
        Self::new(PermissionType::Readwrite, key)
    }

    /// On the keys from the key up to `range_end`, which is excluded.
    pub fn with_range_end(mut self, range_end: impl Into<Vec<u8>>) -> Self {
        self.range.with_range(range_end);
        self
    }

    /// On all keys at or after the key.
    pub fn with_from_key(mut self) -> Self {
        self.range.extent = Extent::FromKey;
        self
    }

    /// On all keys that begin with the key.
    pub fn with_prefix(mut self) -> Self {
        self.range.extent = Extent::Prefix;
        self
    }

    /// On all keys.
    pub fn with_all_keys(mut self) -> Self {
        self.key.clear();
        self.with_from_key()
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The end that was given; empty for a prefix and the like.
    pub fn range_end(&self) -> &[u8] {
        &self.range.range_end
    }

    /// The key as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn key_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(self.key())?)
    }

    /// The end as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn range_end_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(self.range_end())?)
    }

    /// What it allows, as the number of a [`PermissionType`].
    pub const fn get_type(&self) -> i32 {
        self.kind as i32
    }

    /// Whether it is on all keys at or after the key.
    pub const fn is_from_key(&self) -> bool {
        matches!(self.range.extent, Extent::FromKey)
    }

    /// Whether it is on a prefix.
    pub const fn is_prefix(&self) -> bool {
        matches!(self.range.extent, Extent::Prefix)
    }
}

/// As in etcd-client the end does not count, and an empty key equals the key `"\0"`.
impl PartialEq for Permission {
    fn eq(&self, other: &Self) -> bool {
        let key = |permission: &Permission| match &permission.key[..] {
            [] => vec![0],
            key => key.to_vec(),
        };
        self.is_prefix() == other.is_prefix()
            && self.is_from_key() == other.is_from_key()
            && self.kind == other.kind
            && key(self) == key(other)
    }
}

/// Options of revoking a role's permission.
#[derive(Debug, Default, Clone)]
pub struct RoleRevokePermissionOptions {
    range: KeyRange,
}

impl RoleRevokePermissionOptions {
    /// On one key.
    pub const fn new() -> Self {
        RoleRevokePermissionOptions { range: KeyRange::new() }
    }

    /// On the keys from the key up to `range_end`, which is excluded.
    pub fn with_range_end(mut self, range_end: impl Into<Vec<u8>>) -> Self {
        self.range.with_range(range_end);
        self
    }

    /// On all keys that begin with the key.
    pub fn with_prefix(mut self) -> Self {
        self.range.extent = Extent::Prefix;
        self
    }

    /// On all keys at or after the key.
    pub fn with_from_key(mut self) -> Self {
        self.range.extent = Extent::FromKey;
        self
    }

    /// On all keys.
    pub fn with_all_keys(mut self) -> Self {
        self.range.extent = Extent::AllKeys;
        self
    }
}

/// Options of adding a user.
#[derive(Debug, Default, Clone)]
pub struct UserAddOptions {
    no_password: bool,
}

impl UserAddOptions {
    /// With a password.
    pub const fn new() -> Self {
        UserAddOptions { no_password: false }
    }

    /// Without a password.
    pub const fn with_no_pwd(mut self) -> Self {
        self.no_password = true;
        self
    }
}
