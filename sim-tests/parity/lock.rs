//! The lock and the election service.

use leasehold::etcd::{
    Client, ElectionClient, KeyValue, LeaderKey, LeaderResponse, LockClient, LockOptions,
    ObserveStream, ProclaimOptions, ResignOptions,
};

use super::{Named, header};

pub(super) async fn lock(mut client: Client) -> Named {
    let mut locked = client.lock("name", Some(LockOptions::new().with_lease(1))).await?;
    let _: &[u8] = locked.key();
    header!(locked);
    let mut unlocked = client.unlock("key").await?;
    header!(unlocked);
    let mut service: LockClient = client.lock_client().clone();
    let _ = service.lock(vec![1], None).await?;
    let _ = service.unlock(vec![1]).await?;
    const _: LockOptions = LockOptions::new();
    Ok(())
}

pub(super) async fn election(mut client: Client) -> Named {
    let mut campaign = client.campaign("name", "value", 1).await?;
    let _: Option<&LeaderKey> = campaign.leader();
    let leader: LeaderKey = campaign.take_leader().unwrap_or_default();
    header!(campaign);
    let options = ProclaimOptions::new().with_leader(leader.clone());
    let mut proclaimed = client.proclaim("value", Some(options)).await?;
    header!(proclaimed);
    let _: LeaderResponse = client.leader("name").await?;
    observe(client.observe("name").await?).await?;
    let resign = ResignOptions::new().with_leader(leader);
    let mut resigned = client.resign(Some(resign)).await?;
    header!(resigned);
    let mut service: ElectionClient = client.election_client().clone();
    let _ = service.campaign("name", "value", 1).await?;
    let _ = service.proclaim("value", None).await?;
    let _ = service.leader("name").await?;
    let _ = service.observe("name").await?;
    let _ = service.resign(None).await?;
    const _: (ProclaimOptions, ResignOptions) = (ProclaimOptions::new(), ResignOptions::new());
    Ok(())
}

pub(super) fn leader_key() -> Named {
    const _: LeaderKey = LeaderKey::new();
    let key = LeaderKey::new().with_name("name").with_key("key").with_rev(1).with_lease(1);
    let (_, _): (&[u8], &[u8]) = (key.name(), key.key());
    let (_, _): (&str, &str) = (key.name_str()?, key.key_str()?);
    let (_, _): (i64, i64) = (key.rev(), key.lease());
    Ok(())
}

pub(super) async fn observe(mut stream: ObserveStream) -> Named {
    let message: Option<LeaderResponse> = stream.message().await?;
    let Some(mut leader) = message else { return Ok(()) };
    let _: Option<&KeyValue> = leader.kv();
    let _: Option<KeyValue> = leader.take_kv();
    header!(leader);
    Ok(())
}
