//! Ports that nothing listens on.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// So many different free ports of the loopback address. Nothing holds them: take them into use at once.
pub(crate) fn free<const COUNT: usize>() -> io::Result<[u16; COUNT]> {
    let mut listeners = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
