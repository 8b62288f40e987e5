//! Enumerations, errors, and the traits of values.

use std::fmt::Debug;

use leasehold::etcd::{
    AlarmAction, AlarmType, Client, CompareOp, ConnectOptions, DeleteOptions, Error, Event,
    EventType, GetOptions, GetResponse, KeyValue, LeaderKey, LeaseStatus, Member, PermissionType,
    PutOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOpResponse, WatchFilterType,
    WatchOptions, WatchResponse,
};

/// Numbers, names and defaults of the enumerations; gives how many there are.
pub(super) fn numbers_of_enumerations() -> usize {
    let mut count = 0;
    macro_rules! numbers {
        ($($enumeration:ident: $number:literal = $value:ident;)*) => {
            $(
                assert_eq!(i32::from($enumeration::$value), $number);
                assert_eq!($enumeration::try_from($number).ok(), Some($enumeration::$value));
                assert!($enumeration::is_valid($number) && !$enumeration::is_valid(9));
                assert!($enumeration::try_from(-1).is_err());
                assert_eq!(i32::from($enumeration::default()), 0);
                count += 1;
            )*
        };
    }
    numbers! {
        AlarmAction: 2 = Deactivate;
        AlarmType: 2 = Corrupt;
        CompareOp: 3 = NotEqual;
        EventType: 1 = Delete;
        PermissionType: 2 = Readwrite;
        SortOrder: 2 = Descend;
        SortTarget: 4 = Value;
        WatchFilterType: 1 = NoDelete;
    }
    count
}

/// The names are those of etcd's protocol.
#[test]
fn names_of_enumerations() {
    assert_eq!(CompareOp::NotEqual.as_str_name(), "NOT_EQUAL");
    assert_eq!(CompareOp::from_str_name("GREATER"), Some(CompareOp::Greater));
    assert_eq!(EventType::Put.as_str_name(), "PUT");
    assert_eq!(SortOrder::from_str_name("DESCEND"), Some(SortOrder::Descend));
    assert_eq!(SortTarget::Mod.as_str_name(), "MOD");
    assert_eq!(PermissionType::Readwrite.as_str_name(), "READWRITE");
    assert_eq!(AlarmAction::from_str_name("ACTIVATE"), Some(AlarmAction::Activate));
    assert_eq!(AlarmType::from_str_name("nothing"), None);
}

/// Each variant can be told, and a status keeps its code.
#[test]
fn errors_can_be_told_apart() {
    fn kind(error: &Error) -> String {
        match error {
            Error::InvalidArgs(text) | Error::WatchError(text) => text.clone(),
            Error::LeaseKeepAliveError(text) | Error::ElectError(text) => text.clone(),
            Error::EndpointError(text) | Error::Internal(text) => text.clone(),
            Error::InvalidUri(error) => error.to_string(),
            Error::IoError(error) => error.to_string(),
            Error::TransportError(error) => error.to_string(),
            Error::GRpcStatus(status) => format!("{:?} {}", status.code(), status.message()),
            Error::Utf8Error(error) => error.to_string(),
            Error::InvalidMetadataValue(error) => error.to_string(),
            Error::EndpointsNotManaged => "not managed".to_owned(),
        }
    }
    let io = Error::from(std::io::Error::other("broken"));
    assert_eq!((kind(&io), io.to_string()), ("broken".into(), "io error: broken".into()));
    let invalid = Error::InvalidArgs("none".to_owned());
    assert_eq!(invalid.to_string(), "invalid arguments: none");
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(Error::EndpointsNotManaged);
    assert_eq!(boxed.to_string(), "endpoints not managed by this client");
}

/// Values can be cloned, shown and sent; options and a few answers have a default.
#[test]
fn values_have_their_traits() {
    fn value<T: Clone + Debug + Send + Sync + 'static>() {}
    fn default<T: Default>() {}
    fn equal<T: PartialEq>() {}
    fn client<T: Clone + Send + Sync + 'static>() {}
    client::<Client>();
    value::<(ResponseHeader, KeyValue, Event, WatchResponse, GetResponse, TxnOpResponse)>();
    value::<(PutOptions, GetOptions, DeleteOptions, WatchOptions, ConnectOptions, Txn)>();
    default::<(PutOptions, GetOptions, DeleteOptions, WatchOptions, ConnectOptions, Txn)>();
    default::<LeaderKey>();
    equal::<(LeaseStatus, Member)>();
    assert!(SortTarget::Key < SortTarget::Value);
}
