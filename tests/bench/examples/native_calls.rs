//! A thousand native calls of Torch on the small TrainJob, for a tool that counts instructions, which vary less than wall time.

use trainyard_bench::{CHAIN, Job, SMALL, native};

fn main() -> anyhow::Result<()> {
    let chain = native(CHAIN)?;
    let session = Job::read(SMALL.chained())?.session(&chain.renderer()?)?;
    for _ in 0..1000 {
        chain.call(&mut session.clone(), 1)?;
    }
    Ok(())
}
