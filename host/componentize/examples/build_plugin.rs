//! scratch
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let t = std::time::Instant::now();
    let r = trainyard_componentize::build::build(
        std::path::Path::new(&dir),
        &trainyard_componentize::build::Options {
            locked: false,
            ..Default::default()
        },
    );
    match r {
        Ok(b) => {
            println!(
                "{} bytes {:?} {} {:?}",
                b.component.bytes.len(),
                t.elapsed(),
                b.toolchain,
                b.sources
            );
            std::fs::write("/tmp/out.wasm", &b.component.bytes).unwrap();
            println!("{}", serde_json::to_string(&b.component.manifest).unwrap());
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1)
        }
    }
}
