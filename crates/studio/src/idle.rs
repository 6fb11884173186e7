//! Connections on which no request is under way, so that one can be closed where there are too many.

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

#[derive(Default)]
struct Inner {
    /// The idle ones, by when they became idle.
    idle: BTreeMap<u64, Arc<Notify>>,
    next: u64,
}

/// All idle connections of a server.
#[derive(Default)]
pub struct Idle {
    inner: Mutex<Inner>,
}

impl Idle {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection. It is idle until its first request.
    pub fn enter(self: Arc<Self>) -> Arc<Connection> {
        let connection = Connection { all: self, close: Arc::default(), state: Mutex::default() };
        connection.rest(&mut connection.state());
        Arc::new(connection)
    }

    /// Closes the one that has been idle for longest, if there is one.
    pub fn close_oldest(&self) {
        if let Some((_, close)) = self.inner().idle.pop_first() {
            close.notify_one();
        }
    }
}

#[derive(Default)]
struct State {
    /// Requests under way; an answer may be sent still while the next request is read.
    requests: usize,
    /// Its place among the idle ones.
    place: u64,
}

/// One connection.
pub struct Connection {
    all: Arc<Idle>,
    close: Arc<Notify>,
    state: Mutex<State>,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rest(&self, state: &mut State) {
        let mut all = self.all.inner();
        all.next += 1;
        state.place = all.next;
        all.idle.insert(state.place, self.close.clone());
    }

    /// A request begins. It is over when what this gives is dropped.
    pub fn busy(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.requests += 1;
        self.all.inner().idle.remove(&state.place);
        drop(state);
        Busy(self.clone())
    }

    /// Waits until the connection is to be closed.
    pub async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let place = self.state().place;
        self.all.inner().idle.remove(&place);
    }
}

/// A request that is under way, until its answer is sent.
pub struct Busy(Arc<Connection>);

impl Busy {
    /// The body of its answer.
    pub fn answer(self, body: Body) -> Answer {
        Answer { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            self.0.rest(&mut state);
        }
    }
}

/// The body of an answer. Its connection is not idle as long as it is there.
pub struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_has_been_idle_for_longest_is_closed_and_none_that_is_busy() {
        let all = Arc::new(Idle::default());
        let [first, second, third] = [(); 3].map(|()| all.clone().enter());
        let is_closed = |connection: &Arc<Connection>| {
            let closed = std::pin::pin!(connection.closed());
            closed.poll(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
        };
        let request = first.busy();
        let next = first.busy();
        all.close_oldest();
        assert!(is_closed(&second) && !is_closed(&first) && !is_closed(&third));
        drop(request);
        all.close_oldest();
        assert!(is_closed(&third) && !is_closed(&first));
        all.close_oldest();
        assert!(!is_closed(&first), "its second request is under way");
        drop(next);
        drop(third);
        all.close_oldest();
        assert!(is_closed(&first));
        assert!(all.inner().idle.is_empty());
        drop(all.clone().enter());
        assert!(all.inner().idle.is_empty());
    }
}
