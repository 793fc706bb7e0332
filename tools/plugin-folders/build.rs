//! Fails if no toolchain on this machine can build plugins. The build of the program needs one at its end, minutes later. Build scripts
//! depend on this crate, so cargo runs this script early.

#[path = "../../host/componentize/src/toolchain.rs"]
#[expect(unreachable_pub, reason = "it is a public module of componentize")]
mod toolchain;

fn main() {
    // A toolchain that was found is not searched again, because that would rebuild the workspace whenever PATH changes.
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(missing) = toolchain::find() {
        for line in missing.to_string().lines() {
            println!("cargo::error={line}");
        }
    }
}
