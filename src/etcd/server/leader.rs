//! What a member does while it knows no leader, and when it leads again.
//!
//! With one member this is a tool of the harness: its leadership is lost and won by hand, or all
//! the time by a quirk. As in etcd a request that needs the leader waits, up to `ReqTimeout` (5 s
//! and two election time-outs, `config/config.go`), a renewal ends its stream then, and whoever
//! insists on a leader is refused at once. Streams that insist are broken after three election
//! time-outs (`monitorLeader` in `v3rpc/interceptor.go`, which looks at a phase of its own: there
//! it may be up to one sooner); other streams stay. Differs: requests on their way when the leader
//! changes are applied or wait here, in etcd they may also fail with "leader changed" or be lost.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    etcd::{
        model::{Answer, StreamId, error::Refusal, request::Request, response::ResponseHeader},
        protocol::ServerMessage,
    },
    time::sleep,
};

use super::{Inner, MemberState, Process};

/// Without a leader for so many election time-outs, streams are broken (`maxNoLeaderCnt`).
const ELECTIONS_UNTIL_BREAK: u32 = 3;

/// The requests that wait for a leader, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Leaderless {
    patience: Duration,
    held: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    /// On the member's clock.
    deadline: Duration,
    from: StreamId,
    request: Request,
    /// Of a renewal that did not have to wait for another on its stream: the header that it has
    /// begun with.
    begun: Option<ResponseHeader>,
}

impl Held {
    /// Whether the call was delivered again and is among those that wait `after` this one: then its
    /// answer is the later one.
    fn is_repeated(&self, after: &VecDeque<Held>) -> bool {
        !matches!(self.request, Request::KeepAlive(_) | Request::Observe(_))
            && after.iter().any(|later| later.from == self.from)
    }
}

/// Whether the member can do this only with a leader.
fn needs_leader(request: &Request) -> bool {
    match request {
        Request::Range(range) => !range.serializable,
        Request::Leases
        | Request::MemberList
        | Request::Status
        | Request::WatchCreate(_)
        | Request::WatchCancel(_)
        | Request::WatchProgress
        | Request::CloseStream => false,
        _ => true,
    }
}

/// What a request is told whose patience has ended.
fn verdict(request: &Request) -> Refusal {
    match request {
        Request::KeepAlive(_) => Refusal::Leaderless,
        _ => Refusal::TimedOut,
    }
}

/// The leadership of the member.
impl MemberState {
    /// The member loses its leadership and knows no leader until it wins it again. False if it had
    /// none, or if there is no process.
    pub fn lose_leadership(&self) -> bool {
        let mut inner = self.lock();
        if inner.process.strong_count() == 0 || inner.leaderless.is_some() {
            return false;
        }
        inner.model.demote();
        let patience = Duration::from_secs(5) + self.options.election() * 2;
        inner.leaderless = Some(Leaderless { patience, held: VecDeque::new() });
        self.leader_lost.notify_one();
        true
    }

    /// The member wins its leadership, in a new term: all leases live for their full TTL and one
    /// election time-out more, and what waited is done. False if it leads already, or if there is
    /// no process.
    pub fn win_leadership(&self) -> bool {
        let mut inner = self.lock();
        let Some(process) = inner.process.upgrade() else { return false };
        let Some(leaderless) = inner.leaderless.take() else { return false };
        inner.model.promote(process.clock.now(), self.options.election());
        process.note_promotion(self.options.election());
        inner.pass_on(&process);
        let mut held = leaderless.held;
        while let Some(next) = held.pop_front() {
            let (from, repeated) = (next.from, next.is_repeated(&held));
            let answer = inner.handle_held(&process, next);
            inner.answer(from, answer.filter(|_| !repeated));
        }
        true
    }

    /// A change of the leader that nobody can see but by its effects: lost and won at once.
    pub fn promote(&self) -> bool {
        self.lose_leadership() && self.win_leadership()
    }

    fn is_leaderless(&self) -> bool {
        self.lock().leaderless.is_some()
    }
}

impl Inner {
    /// Gives the request back if it can be done now. Else it waits, or is refused.
    pub(super) fn hold(
        &mut self,
        now: Duration,
        from: StreamId,
        request: Request,
        require_leader: bool,
    ) -> Result<Request, Option<Refusal>> {
        let Some(leaderless) = &mut self.leaderless else { return Ok(request) };
        if matches!(request, Request::CloseStream | Request::Cancel) {
            leaderless.held.retain(|held| held.from != from);
            return Ok(request);
        }
        if require_leader && !self.strict_streams.contains(&from) {
            return Err(Some(Refusal::Leaderless));
        }
        if !needs_leader(&request) {
            return Ok(request);
        }
        let deadline = now + leaderless.patience;
        let begins = matches!(request, Request::KeepAlive(_))
            && leaderless.held.iter().all(|held| held.from != from);
        let begun = begins.then(|| self.model.header());
        leaderless.held.push_back(Held { deadline, from, request, begun });
        Err(None)
    }

    /// Does a request that has waited.
    fn handle_held(&mut self, process: &Process, held: Held) -> Option<Answer> {
        let (now, begun) = (process.clock.now(), held.begun);
        let Request::KeepAlive(lease) = held.request else {
            return self.handle(process, held.from, held.request);
        };
        self.requests += 1;
        let answer = self.model.keep_alive(now, held.from, lease, begun).map(Ok);
        self.pass_on(process);
        answer
    }

    /// Answers a request that has waited.
    fn answer(&self, to: StreamId, answer: Option<Answer>) {
        let (connection, id) = to;
        let sender = self.connections.get(&connection).and_then(|sender| sender.upgrade());
        if let (Some(sender), Some(answer)) = (sender, answer) {
            // A peer that is gone is noticed where its connection is read.
            let _ = sender.send(ServerMessage { id, answer });
        }
    }

    /// A client has gone, and nobody waits for what it has asked.
    pub(super) fn forget_held(&mut self, connection: u64) {
        if let Some(leaderless) = &mut self.leaderless {
            leaderless.held.retain(|held| held.from.0 != connection);
        }
    }

    /// Ends a stream with an error.
    fn break_stream(&mut self, stream: StreamId, why: Refusal) {
        self.strict_streams.remove(&stream);
        self.broken_streams.insert(stream);
        self.model.close(stream);
        if let Some(leaderless) = &mut self.leaderless {
            leaderless.held.retain(|held| held.from != stream);
        }
        self.answer(stream, Some(Err(why)));
    }

    /// Refuses what has waited for too long.
    fn lose_patience(&mut self, now: Duration) {
        loop {
            let Some(leaderless) = &mut self.leaderless else { return };
            let late = leaderless.held.front().is_some_and(|held| held.deadline <= now);
            let Some(held) = leaderless.held.pop_front_if(|_| late) else { return };
            let why = verdict(&held.request);
            match held.request {
                Request::KeepAlive(_) | Request::Observe(_) => self.break_stream(held.from, why),
                _ if held.is_repeated(&leaderless.held) => {}
                _ => self.answer(held.from, Some(Err(why))),
            }
        }
    }
}

/// Watches over the time without a leader.
pub(super) async fn monitor(state: Arc<MemberState>, process: Arc<Process>) {
    loop {
        state.leader_lost.notified().await;
        let mut ticks = 0;
        while state.is_leaderless() {
            sleep(state.options.heartbeat).await;
            ticks += 1;
            let mut inner = state.lock();
            inner.lose_patience(process.clock.now());
            if ticks == ELECTIONS_UNTIL_BREAK * state.options.election_ticks() {
                for stream in inner.strict_streams.clone() {
                    inner.break_stream(stream, Refusal::Leaderless);
                }
            }
        }
    }
}
