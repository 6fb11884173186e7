//! Who may ask: requests from elsewhere are refused before their content is looked at.
//!
//! A page of another site can make a browser send requests here. It cannot choose the `Host` (so a name that points to this
//! machine is found out), it cannot hide its `Origin`, and without one it cannot say that it sends JSON.

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// What a request must be like.
pub struct Guard {
    /// Where the server listens.
    address: SocketAddr,
    /// What every request for data must bring, unless only this machine can ask.
    token: Option<String>,
}

/// Why a request is refused.
pub type Refused = (StatusCode, &'static str, &'static str);

/// Whether two texts are the same, in a time that does not depend on where they differ.
fn same(a: &str, b: &str) -> bool {
    let different = a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(different) == 0 && a.len() == b.len()
}

/// A token from the system's source of random numbers.
fn draw() -> std::io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The address of this machine in its network. Nothing is sent: a datagram socket that is given a destination knows its source.
fn own_address(of: IpAddr) -> Option<IpAddr> {
    // Destinations that are reserved for documentation.
    let (any, far): (SocketAddr, SocketAddr) = match of {
        IpAddr::V4(_) => (([0, 0, 0, 0], 0).into(), ([192, 0, 2, 1], 9).into()),
        IpAddr::V6(any) => ((any, 0).into(), (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into()),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(far).ok()?;
    socket.local_addr().ok().map(|own| own.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}

impl Guard {
    /// For a server at that address. One that others can reach has a token.
    pub fn new(address: SocketAddr) -> std::io::Result<Guard> {
        let token = if address.ip().is_loopback() { None } else { Some(draw()?) };
        Ok(Guard { address, token })
    }

    /// The address to open on this machine, with the token.
    pub fn url(&self) -> String {
        match self.address.ip() {
            ip if ip.is_unspecified() => self.url_at(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.address.port())),
            _ => self.url_at(self.address),
        }
    }

    /// The address that others can open, without the token; nothing if they cannot, or if none of this machine's is known.
    pub fn abroad(&self) -> Option<SocketAddr> {
        match self.address.ip() {
            ip if ip.is_loopback() => None,
            ip if ip.is_unspecified() => Some(SocketAddr::new(own_address(ip)?, self.address.port())),
            _ => Some(self.address),
        }
    }

    /// The same with the token, where it is another than [`Guard::url`].
    pub fn url_abroad(&self) -> Option<String> {
        self.abroad().filter(|address| *address != self.address).map(|address| self.url_at(address))
    }

    fn url_at(&self, address: SocketAddr) -> String {
        let token = self.token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
        format!("http://{address}/{token}")
    }

    /// Whether a name with a port is this server's. Names that others can give to this machine are not among them.
    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port),
            _ => (host, "80"),
        };
        if port.parse() != Ok(self.address.port()) || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let ip: Option<IpAddr> = match bare {
            Some(bare) => bare.parse().ok().filter(IpAddr::is_ipv6),
            None => name.parse().ok().filter(IpAddr::is_ipv4),
        };
        let own = self.address.ip();
        match ip {
            None => name.eq_ignore_ascii_case("localhost") && (own.is_loopback() || own.is_unspecified()),
            // A numeric address leads to that machine and no other.
            Some(ip) => ip == own || own.is_unspecified() || own.is_loopback() && ip.is_loopback(),
        }
    }

    /// Looks at everything but the body. `Ok` if the request may go on.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let text = |name: header::HeaderName| {
            let mut all = headers.get_all(name).iter();
            match (all.next(), all.next()) {
                (None, _) => Ok(None),
                (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
                _ => Err(()),
            }
        };
        const ADDRESS: &str = "open the address that `tailwater studio` printed";
        let wrong_host = (StatusCode::MISDIRECTED_REQUEST, "the request is for another host", ADDRESS);
        let host = text(header::HOST).ok().flatten().ok_or(wrong_host)?;
        if !self.is_ours(host) || uri.authority().is_some_and(|authority| !self.is_ours(authority.as_str())) {
            return Err(wrong_host);
        }
        let foreign = (StatusCode::FORBIDDEN, "the request comes from a page of another site", ADDRESS);
        let origin = text(header::ORIGIN).map_err(|()| foreign)?;
        if origin.is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(|host| self.is_ours(host))) {
            return Err(foreign);
        }
        let api = uri.path() == "/api" || uri.path().starts_with("/api/");
        let site = headers.get("sec-fetch-site").map_or(&b""[..], |value| value.as_bytes());
        if api && [&b"cross-site"[..], b"same-site"].contains(&site) {
            return Err(foreign);
        }
        if ![Method::GET, Method::HEAD].contains(method) && origin.is_none() && !is_json(headers) {
            let help = "send it with Content-Type: application/json";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a request that changes something is not JSON", help));
        }
        let Some(token) = self.token.as_deref().filter(|_| api) else { return Ok(()) };
        let bearer = text(header::AUTHORIZATION).ok().flatten().and_then(|value| value.strip_prefix("Bearer "));
        let query = uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("token="));
        match bearer.or(query).is_some_and(|given| same(given, token)) {
            true => Ok(()),
            false => Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong", ADDRESS)),
        }
    }
}

/// Whether the body is said to be JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Guard {
        Guard::new(address.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_name_that_others_can_point_here_is_not_ours() {
        let own = guard("127.0.0.1:4774");
        for ours in ["127.0.0.1:4774", "localhost:4774", "LocalHost:4774", "[::1]:4774", "127.0.0.2:4774"] {
            assert!(own.is_ours(ours), "{ours}");
        }
        for foreign in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "localhost:47740",
            "localhost:+4774",
            "evil.example:4774",
            "localhost.evil.example:4774",
            "localhost:4774.evil.example",
            "10.0.0.1:4774",
            "[::2]:4774",
            "::1:4774",
            "",
            ":4774",
            "localhost:4774:4774",
            "a@localhost:4774",
        ] {
            assert!(!own.is_ours(foreign), "{foreign}");
        }
        assert!(guard("127.0.0.1:80").is_ours("localhost"));
        let all = guard("0.0.0.0:4774");
        assert!(all.is_ours("10.0.0.1:4774") && all.is_ours("localhost:4774") && !all.is_ours("evil.example:4774"));
        let one = guard("10.0.0.1:4774");
        assert!(one.is_ours("10.0.0.1:4774") && !one.is_ours("localhost:4774") && !one.is_ours("127.0.0.1:4774"));
    }

    #[test]
    fn others_are_given_an_address_that_leads_here_and_not_to_themselves() {
        assert_eq!((guard("127.0.0.1:1").abroad(), guard("127.0.0.1:1").url_abroad()), (None, None));
        let one = guard("10.0.0.1:4774");
        // The address that is printed is good for all.
        assert_eq!((one.abroad(), one.url_abroad()), ("10.0.0.1:4774".parse().ok(), None));
        let all = guard("0.0.0.0:4774");
        assert!(all.url().starts_with("http://127.0.0.1:4774/?token="), "{}", all.url());
        // A machine without a network has none.
        if let Some(url) = all.url_abroad() {
            let address = all.abroad().unwrap();
            assert!(!address.ip().is_loopback() && !address.ip().is_unspecified(), "{url}");
            assert!(all.is_ours(&address.to_string()) && url.ends_with(&all.url()[all.url().find('?').unwrap()..]));
        }
    }

    #[test]
    fn a_token_is_drawn_for_a_server_that_others_can_reach_and_is_another_each_time() {
        assert!(guard("127.0.0.1:1").token.is_none() && guard("[::1]:1").token.is_none());
        let (a, b) = (guard("0.0.0.0:1"), guard("0.0.0.0:1"));
        assert!(a.token.as_ref().is_some_and(|token| token.len() == 48));
        assert_ne!(a.token, b.token);
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("abc", "ab") && !same("", "a"));
    }
}
