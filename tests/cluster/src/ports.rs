//! Free ports.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use tokio::net::TcpSocket;

/// A port of the loopback address that is reserved until this value is dropped. Servers can listen on it repeatedly.
///
/// A socket that is bound but does not listen prevents the system from assigning the port to others. A server can still listen on it if
/// it sets `SO_REUSEADDR`, as servers do. This works only on Linux; elsewhere, the port is free when it is found, but not reserved.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _kept: Option<TcpSocket>,
}

impl Port {
    /// Finds a free port.
    ///
    /// # Errors
    /// No port is free.
    pub fn find() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket
            .bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .context("no port is free")?;
        Ok(Self {
            number: socket.local_addr()?.port(),
            _kept: cfg!(target_os = "linux").then_some(socket),
        })
    }

    /// Returns its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::{Shutdown, TcpListener, TcpStream};

    use socket2::SockRef;

    use super::*;

    #[test]
    fn released_port_can_be_bound_again() {
        let port = Port::find().unwrap();
        let address = (Ipv4Addr::LOCALHOST, port.number());
        for _ in 0..3 {
            assert!(TcpStream::connect(address).is_err());
            let listener = TcpListener::bind(address).unwrap();
            let stream = TcpStream::connect(address).unwrap();
            drop((listener.accept().unwrap(), stream));
            // A child that another test has just forked can have a copy of the listener, which would continue to listen.
            SockRef::from(&listener).shutdown(Shutdown::Both).unwrap();
        }
    }
}
