//! smoke
use toolwright_core::{ExecRequest, Sandbox};
use toolwright_sandbox::{Policy, ProcessSandbox};
fn main() {
    toolwright_sandbox::launcher::main_if_launcher();
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    rt.block_on(async {
        let t = std::time::Instant::now();
        let sb = ProcessSandbox::open(Policy::private()).await.map_err(|e| format!("{e:?}")).unwrap();
        println!("open {:?}\n{:?}\nmissing {:?}", t.elapsed(), sb.layers(), sb.missing());
        for cmd in ["id; ls -la / /dev /tmp . ; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; mount; ps aux; touch x; ls -la x; env", "kill -9 $$", "exit 7"] {
            let r = sb.exec(ExecRequest::new(["sh", "-c", cmd])).await;
            match r { Ok(r) => println!("{}\n{}\n{}", r.code, r.stdout, r.stderr), Err(e) => println!("{e:?}") }
        }
        let n = 300;
        let t = std::time::Instant::now();
        for _ in 0..n { sb.exec(ExecRequest::new(["/bin/true"])).await.unwrap(); }
        println!("warm {:?}", t.elapsed() / n);
        let t = std::time::Instant::now();
        for _ in 0..50 { let sb = ProcessSandbox::open(Policy::private()).await.unwrap(); sb.exec(ExecRequest::new(["/bin/true"])).await.unwrap(); }
        println!("cold {:?}", t.elapsed() / 50);
    });
}
