//! Keys and values, transactions.

use leasehold::etcd::{
    Client, CompactionOptions, Compare, CompareOp, DeleteOptions, GetOptions, GetResponse,
    KeyValue, KvClient, PutOptions, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use super::{Named, header};

pub(super) async fn client(mut client: Client) -> Named {
    let mut put = client.put("key", b"value".to_vec(), Some(PutOptions::new())).await?;
    let _: Option<&KeyValue> = put.prev_key();
    let _: Option<KeyValue> = put.take_prev_key();
    header!(put);
    let get: GetResponse = client.get("key", None).await?;
    range(get)?;
    let mut delete = client.delete(vec![1_u8], Some(DeleteOptions::new())).await?;
    let _: i64 = delete.deleted();
    let _: &[KeyValue] = delete.prev_kvs();
    let _: Vec<KeyValue> = delete.take_prev_kvs();
    header!(delete);
    let compaction = CompactionOptions::new().with_physical();
    let mut compacted = client.compact(1, Some(compaction)).await?;
    header!(compacted);
    txn(client.txn(Txn::new()).await?);
    Ok(())
}

pub(super) async fn client_of_the_service(client: &Client) -> Named {
    let kv: KvClient = client.kv_client();
    let mut kv = kv.max_decoding_message_size(1).max_encoding_message_size(1).clone();
    let _ = kv.put("key", "value", None).await?;
    let _ = kv.get("key", Some(GetOptions::new())).await?;
    let _ = kv.delete("key", None).await?;
    let _ = kv.compact(1, None).await?;
    let _ = kv.txn(Txn::default()).await?;
    Ok(())
}

pub(super) fn options() {
    let put: PutOptions =
        PutOptions::new().with_lease(1).with_prev_key().with_ignore_value().with_ignore_lease();
    let get: GetOptions = GetOptions::new()
        .with_range("end")
        .with_from_key()
        .with_prefix()
        .with_all_keys()
        .with_limit(1)
        .with_revision(1)
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_serializable()
        .with_keys_only()
        .with_count_only()
        .with_min_mod_revision(1)
        .with_max_mod_revision(1)
        .with_min_create_revision(1)
        .with_max_create_revision(1);
    let delete: DeleteOptions = DeleteOptions::new()
        .with_range(vec![0])
        .with_from_key()
        .with_prefix()
        .with_all_keys()
        .with_prev_key();
    let compares = [
        Compare::version("key", CompareOp::Equal, 1),
        Compare::create_revision("key", CompareOp::NotEqual, 1),
        Compare::mod_revision("key", CompareOp::Greater, 1),
        Compare::value("key", CompareOp::Less, "value").with_range("end"),
        Compare::lease("key", CompareOp::Equal, 1).with_prefix(),
    ];
    let inner = Txn::new().when(compares.clone()).or_else(vec![TxnOp::delete("key", None)]);
    let operations = [
        TxnOp::put("key", "value", Some(put)),
        TxnOp::get("key", Some(get)),
        TxnOp::delete("key", Some(delete)),
        TxnOp::txn(inner),
    ];
    let _: Txn = Txn::new().when(compares).and_then(operations.clone()).or_else(operations).clone();
    const _: (PutOptions, CompactionOptions, Txn) =
        (PutOptions::new(), CompactionOptions::new(), Txn::new());
    const _: (GetOptions, DeleteOptions) = (GetOptions::new(), DeleteOptions::new());
}

pub(super) fn range(mut get: GetResponse) -> Named {
    let (_, _): (i64, bool) = (get.count(), get.more());
    for kv in get.kvs() {
        let (_, _): (&[u8], &[u8]) = (kv.key(), kv.value());
        let (_, _): (&str, &str) = (kv.key_str()?, kv.value_str()?);
        let _: [i64; 4] = [kv.create_revision(), kv.mod_revision(), kv.version(), kv.lease()];
    }
    for kv in get.take_kvs() {
        let (_, _): (Vec<u8>, Vec<u8>) = kv.into_key_value();
    }
    let Some(header) = get.header() else { return Ok(()) };
    let (_, _, _): (u64, u64, u64) = (header.cluster_id(), header.member_id(), header.raft_term());
    let _: i64 = header.revision();
    header!(get);
    Ok(())
}

pub(super) fn txn(mut response: TxnResponse) {
    let _: bool = response.succeeded();
    for answer in response.op_responses() {
        match answer {
            TxnOpResponse::Put(mut put) => header!(put),
            TxnOpResponse::Get(mut get) => header!(get),
            TxnOpResponse::Delete(mut delete) => header!(delete),
            TxnOpResponse::Txn(nested) => txn(nested),
        }
    }
    header!(response);
}
