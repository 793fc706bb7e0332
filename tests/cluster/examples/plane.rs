//! Keeps a cluster running for test programs, until it is stopped: `make plane`.

use anyhow::Result;
use trainyard_cluster::{Cluster, StopSignals};

fn main() -> Result<()> {
    let kept = Cluster::start_own()?.keep()?;
    println!(
        "A cluster runs until this is ended by Ctrl-C. Tests use it, one program at a time, after"
    );
    println!("\n  export TRAINYARD_PLANE={}\n", kept.folder().display());
    kept.block_on(async {
        StopSignals::catch()?.recv().await;
        Ok(())
    })
}
