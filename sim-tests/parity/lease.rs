//! Leases.

use leasehold::etcd::{
    Client, Error, LeaseClient, LeaseGrantOptions, LeaseKeepAliveResponse, LeaseKeepAliveStream,
    LeaseKeeper, LeaseStatus, LeaseTimeToLiveOptions,
};

use super::{Named, header};

pub(super) async fn client(mut client: Client) -> Named {
    let mut granted = client.lease_grant(2, Some(LeaseGrantOptions::new().with_id(7))).await?;
    let (_, _): (i64, i64) = (granted.ttl(), granted.id());
    let _: &str = granted.error();
    header!(granted);
    let (keeper, renewals) = client.lease_keep_alive(7).await?;
    stream(keeper, renewals).await?;
    let options = LeaseTimeToLiveOptions::new().with_keys();
    let mut left = client.lease_time_to_live(7, Some(options)).await?;
    let (_, _, _): (i64, i64, i64) = (left.ttl(), left.id(), left.granted_ttl());
    let _: &[Vec<u8>] = left.keys();
    header!(left);
    let mut list = client.leases().await?;
    let statuses: &[LeaseStatus] = list.leases();
    let _: Vec<i64> = statuses.iter().map(LeaseStatus::id).collect();
    header!(list);
    let mut revoked = client.lease_revoke(7).await?;
    header!(revoked);
    const _: (LeaseGrantOptions, LeaseTimeToLiveOptions) =
        (LeaseGrantOptions::new(), LeaseTimeToLiveOptions::new());
    Ok(())
}

pub(super) async fn client_of_the_service(client: &Client) -> Named {
    let mut lease: LeaseClient = client.lease_client().clone();
    let _ = lease.grant(2, None).await?;
    let (_, _): (LeaseKeeper, LeaseKeepAliveStream) = lease.keep_alive(7).await?;
    let _ = lease.time_to_live(7, None).await?;
    let _ = lease.leases().await?;
    let _ = lease.revoke(7).await?;
    Ok(())
}

pub(super) async fn stream(mut keeper: LeaseKeeper, mut renewals: LeaseKeepAliveStream) -> Named {
    fn is_stream<S>(_: &S)
    where
        S: futures_util::Stream<Item = Result<LeaseKeepAliveResponse, Error>> + Unpin,
    {
    }
    let _: i64 = keeper.id();
    let (): () = keeper.keep_alive().await?;
    is_stream(&renewals);
    let answer: Option<LeaseKeepAliveResponse> = renewals.message().await?;
    let Some(mut answer) = answer else { return Ok(()) };
    let (_, _): (i64, i64) = (answer.ttl(), answer.id());
    header!(answer);
    Ok(())
}
