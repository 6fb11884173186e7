//! A studio without a network: for those who want to see what a request is answered with, whatever its bytes.

use crate::api::{Studio, router};
use crate::guard::Guard;
use crate::jobs::Jobs;
use crate::limits;
use crate::server::http;
use crate::workspace::Workspace;
use axum::Router;
use files::problem::Problem;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

/// A studio that answers bytes with bytes. It starts no process: jobs wait, and nothing is asked of a helper.
pub struct Unplugged {
    jobs: Arc<Jobs>,
    app: Router,
    runtime: Runtime,
}

impl Unplugged {
    /// The `Host` that requests must name.
    pub const HOST: &str = "127.0.0.1:4774";

    /// Takes a folder for its workspace.
    pub fn new(folder: &Path) -> Result<Unplugged, Problem> {
        let failed = |error: io::Error| Problem::new("the studio", format!("cannot be used: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        // No program has this name, so that none is started.
        let jobs = Arc::new(Jobs::new(Workspace::open(folder)?, "/dev/null/tailwater".into(), 1)?);
        // It is about to close, so that nobody listens to events for ever.
        let (_, closing) = watch::channel(true);
        let studio = Studio {
            jobs: jobs.clone(),
            guard: Guard::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 4774))).map_err(failed)?,
            page: None,
            closing,
            listeners: Arc::new(Semaphore::new(limits::LISTENERS)),
            helpers: Semaphore::new(limits::HELPERS),
        };
        Ok(Unplugged { jobs, app: router(Arc::new(studio)), runtime })
    }

    /// What a connection is answered on which these bytes arrive and then no more.
    pub fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut line = Line { left: bytes.to_vec(), said: Vec::new() };
        let service = TowerToHyperService::new(self.app.clone());
        self.runtime.block_on(async {
            // What is asked is answered although nothing more will be asked.
            _ = http().half_close(true).serve_connection(TokioIo::new(&mut line), service).await;
        });
        line.said
    }

    /// Forgets all jobs.
    pub fn clear(&self) {
        for job in self.jobs.list() {
            _ = self.jobs.delete(job.id);
        }
    }

    /// What is wrong with its workspace.
    pub fn notes(&self) -> &[String] {
        &self.jobs.notes
    }
}

/// A connection in memory.
struct Line {
    left: Vec<u8>,
    said: Vec<u8>,
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = buffer.remaining().min(self.left.len());
        let rest = self.left.split_off(count);
        buffer.put_slice(&self.left);
        self.left = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.said.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_answered_request_by_request_and_starts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let studio = Unplugged::new(&dir.path().join("work")).unwrap();
        let body = r#"{"kind":"reproduce","id":"bfc/fig4"}"#;
        let head = format!("Host: {}\r\nContent-Type: application/json\r\n", Unplugged::HOST);
        let add = format!("POST /api/jobs HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let both = format!("{add}GET /api/jobs/1 HTTP/1.1\r\n{head}\r\n");
        let said = String::from_utf8(studio.answer(both.as_bytes())).unwrap();
        assert!(said.starts_with("HTTP/1.1 201 ") && said.contains("HTTP/1.1 200 OK"), "{said}");
        assert!(said.contains("\"state\":\"queued\""), "{said}");
        studio.clear();
        let gone = format!("GET /api/jobs/1 HTTP/1.1\r\n{head}\r\n");
        assert!(studio.answer(gone.as_bytes()).starts_with(b"HTTP/1.1 404 "));
        // Events end, a body that breaks off is refused, and noise is no request.
        let events = format!("GET /api/events HTTP/1.1\r\n{head}\r\n");
        assert!(studio.answer(events.as_bytes()).starts_with(b"HTTP/1.1 200 "));
        assert!(studio.answer(&add.as_bytes()[..add.len() - 3]).starts_with(b"HTTP/1.1 400 "));
        assert!(studio.answer(b"\x00\x01").starts_with(b"HTTP/1.1 400 "));
        assert!(studio.notes().is_empty());
    }
}
