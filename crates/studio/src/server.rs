//! Listening, and ending in good order.

use crate::api::{Studio, router};
use crate::guard::Guard;
use crate::idle::Idle;
use crate::jobs::Jobs;
use crate::limits;
use crate::workspace::Workspace;
use axum::Router;
use files::problem::Problem;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};

/// How a studio is set up.
pub struct Options {
    /// The workspace.
    pub folder: PathBuf,
    /// The address to listen at.
    pub listen: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Jobs that run at once.
    pub jobs: NonZeroUsize,
    /// A folder with the page, instead of the one that is built in.
    pub page: Option<PathBuf>,
    /// The program whose processes do the work: `tailwater`.
    pub program: PathBuf,
}

/// Serves until the process is asked to end. `ready` is called with the address to open and what is wrong with the workspace.
pub fn serve(options: Options, ready: impl FnOnce(&str, &[String])) -> Result<(), Problem> {
    let workspace = Workspace::open(&options.folder)?;
    if let Some(folder) = options.page.as_ref().filter(|folder| !folder.join("index.html").is_file()) {
        let problem = Problem::new(folder.display().to_string(), "has no index.html");
        return Err(problem.help("name the folder of the page, such as crates/studio/page"));
    }
    let jobs = Jobs::new(workspace, options.program, options.jobs.get())?;
    let place = SocketAddr::new(options.listen, options.port);
    let problem = |what: &str, error: io::Error| {
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "something listens there already; choose another with --port, or --port 0 for any"
            }
            io::ErrorKind::PermissionDenied => "choose a port above 1023 with --port",
            io::ErrorKind::AddrNotAvailable => "--listen takes an address of this machine",
            _ => "check the system's limits",
        };
        Problem::new(what, format!("cannot be used: {error}")).help(help)
    };
    let failed = |error| problem("the studio", error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let result = runtime.block_on(async {
        let listener = listen(place).map_err(|error| problem(&place.to_string(), error))?;
        let guard = Guard::new(listener.local_addr().map_err(failed)?).map_err(failed)?;
        let url = guard.url();
        let mut notes = jobs.notes.clone();
        notes.extend(guard.url_abroad().map(|url| format!("others open {url}")));
        let end = ending().map_err(failed)?;
        let jobs = Arc::new(jobs);
        let (close, closing) = watch::channel(false);
        let studio = Arc::new(Studio {
            jobs: jobs.clone(),
            guard,
            page: options.page,
            closing,
            listeners: Arc::new(Semaphore::new(limits::LISTENERS)),
            helpers: Semaphore::new(limits::HELPERS),
        });
        tokio::spawn(jobs.clone().work());
        ready(&url, &notes);
        let app = router(studio);
        tokio::select! {
            () = accept(&listener, app) => {}
            () = end => {}
        }
        drop(listener);
        _ = close.send(true);
        jobs.close().await;
        Ok(())
    });
    // Connections that are still there are not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Listens with room for a burst of connections. Where the system's queue is full it drops some without a word, and those who
/// opened them try again after seconds, or never.
fn listen(place: SocketAddr) -> io::Result<TcpListener> {
    let socket = if place.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(place)?;
    socket.listen(limits::WAITING)
}

/// Is over when the process is asked to end.
fn ending() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Takes connections, so many at once. Where all places are taken, the connection that has been idle for longest makes room: one that
/// brings no request must not keep out one that does.
async fn accept(listener: &TcpListener, app: Router) {
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let idle = Arc::new(Idle::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No more files may be opened, most likely: others end in the meantime.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let place = match places.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                idle.close_oldest();
                // Without an idle one, a request that is under way ends first.
                let Ok(place) = places.clone().acquire_owned().await else { return };
                place
            }
        };
        _ = stream.set_nodelay(true);
        let connection = idle.clone().enter();
        let (app, requests) = (TowerToHyperService::new(app.clone()), connection.clone());
        let service = service_fn(move |request| {
            let (busy, answer) = (requests.busy(), app.call(request));
            async move { Ok::<_, Infallible>(answer.await?.map(|body| busy.answer(body))) }
        });
        tokio::spawn(async move {
            let _place = place;
            // What goes wrong with a connection is over with it.
            tokio::select! {
                _ = http().serve_connection(TokioIo::new(Patient::new(stream)), service) => {}
                () = connection.closed() => {}
            }
        });
    }
}

/// How connections are served.
pub(crate) fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::HEAD).max_buf_size(64 << 10);
    http
}

/// A connection that is given up when its other end takes nothing for too long.
struct Patient {
    stream: TcpStream,
    /// When it is given up, while it takes nothing.
    limit: Pin<Box<Sleep>>,
    waiting: bool,
}

impl Patient {
    fn new(stream: TcpStream) -> Patient {
        Patient { stream, limit: Box::pin(tokio::time::sleep(limits::STALLED)), waiting: false }
    }

    fn patiently<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.waiting = false;
            return poll;
        }
        if !self.waiting {
            self.waiting = true;
            self.limit.as_mut().reset(Instant::now() + limits::STALLED);
        }
        ready!(self.limit.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patiently(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.patiently(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.patiently(context, poll)
    }
}
