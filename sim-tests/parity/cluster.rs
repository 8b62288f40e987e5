//! Connecting, the members, their maintenance.

use std::time::Duration;

use leasehold::etcd::{
    AlarmAction, AlarmMember, AlarmOptions, AlarmType, Client, ClusterClient, ConnectOptions,
    MaintenanceClient, Member, MemberAddOptions, SnapshotResponse, SnapshotStreaming,
};

use super::{Named, header};

pub(super) async fn connect() -> Named {
    const _: ConnectOptions = ConnectOptions::new();
    let second = Duration::from_secs(1);
    let options = ConnectOptions::new()
        .with_user("name", "password")
        .with_timeout(second)
        .with_connect_timeout(second)
        .with_keep_alive(second, second)
        .with_keep_alive_while_idle(true)
        .with_tcp_keepalive(second)
        .with_require_leader(true);
    let mut client: Client = Client::connect(["localhost:2379"], Some(options.clone())).await?;
    let _ = Client::connect(vec!["http://localhost:2379".to_owned()], None).await?;
    let _ = Client::connect(&["localhost:2379"][..], Some(ConnectOptions::default())).await?;
    let (): () = client.add_endpoint("localhost:2379").await?;
    let (): () = client.remove_endpoint(String::from("localhost:2379")).await?;
    let (): () = client.refresh_token().await?;
    let (): () = client.update_user(Some(("name".to_owned(), "password".to_owned()))).await?;
    Ok(())
}

pub(super) async fn members(mut client: Client) -> Named {
    const _: MemberAddOptions = MemberAddOptions::new();
    let options = MemberAddOptions::new().with_is_learner();
    let mut added = client.member_add(["localhost:2380"], Some(options)).await?;
    let _: Option<&Member> = added.member();
    let _: &[Member] = added.member_list();
    header!(added);
    let mut list = client.member_list().await?;
    for member in list.members() {
        let (_, _): (u64, bool) = (member.id(), member.is_learner());
        let _: &str = member.name();
        let (_, _): (&[String], &[String]) = (member.peer_urls(), member.client_urls());
        assert!(*member == member.clone());
    }
    header!(list);
    let mut removed = client.member_remove(1).await?;
    let _: &[Member] = removed.members();
    header!(removed);
    let mut updated = client.member_update(1, ["http://localhost:2380".to_owned()]).await?;
    let _: &[Member] = updated.members();
    header!(updated);
    let mut promoted = client.member_promote(1).await?;
    let _: &[Member] = promoted.members();
    header!(promoted);
    let mut service: ClusterClient = client.cluster_client().clone();
    let _ = service.member_add(["http://localhost:2380".to_owned()], None).await?;
    let _ = service.member_list().await?;
    let _ = service.member_remove(1).await?;
    let _ = service.member_update(1, vec![String::new()]).await?;
    let _ = service.member_promote(1).await?;
    Ok(())
}

pub(super) async fn status(mut client: Client) -> Named {
    let mut status = client.status().await?;
    let _: &str = status.version();
    let (_, _): (i64, i64) = (status.db_size(), status.raft_used_db_size());
    let _: [u64; 3] = [status.leader(), status.raft_index(), status.raft_term()];
    let (_, _): (u64, bool) = (status.raft_applied_index(), status.is_learner());
    let _: &[String] = status.errors();
    header!(status);
    Ok(())
}

pub(super) async fn maintenance(mut client: Client) -> Named {
    const _: AlarmOptions = AlarmOptions::new();
    let mut options = AlarmOptions::default();
    let (): () = options.with_member(1);
    let alarms = client.alarm(AlarmAction::Get, AlarmType::None, Some(options.clone())).await;
    let mut alarms = alarms?;
    for alarm in alarms.alarms() {
        let alarm: &AlarmMember = alarm;
        let (_, _): (u64, AlarmType) = (alarm.member_id(), alarm.alarm());
    }
    header!(alarms);
    let mut defragmented = client.defragment().await?;
    header!(defragmented);
    let mut hash = client.hash().await?;
    let _: u32 = hash.hash();
    header!(hash);
    let mut hash_kv = client.hash_kv(1).await?;
    let (_, _): (u32, i64) = (hash_kv.hash(), hash_kv.compact_version());
    header!(hash_kv);
    let mut moved = client.move_leader(1).await?;
    header!(moved);
    let mut snapshot: SnapshotStreaming = client.snapshot().await?;
    let piece: Option<SnapshotResponse> = snapshot.message().await?;
    let Some(mut piece) = piece else { return Ok(()) };
    let (_, _): (u64, &[u8]) = (piece.remaining_bytes(), piece.blob());
    header!(piece);
    let mut service: MaintenanceClient = client.maintenance_client().clone();
    let _ = service.alarm(AlarmAction::Activate, AlarmType::Nospace, None).await?;
    let _ = service.status().await?;
    let _ = service.defragment().await?;
    let _ = service.hash().await?;
    let _ = service.hash_kv(1).await?;
    let _ = service.snapshot().await?;
    let _ = service.move_leader(1).await?;
    Ok(())
}
