//! Real servers on loopback, each ended with the test that started it. `cargo xtask test` installs them;
//! where one is missing, its tests say so and pass.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::file;

/// A server.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of one of the Python environments.
fn program(environment: &str, name: &str) -> Result<PathBuf, String> {
    let path = file(&format!("target/peers/{environment}/bin/{name}"));
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{environment} is not installed (cargo xtask test installs it)"))
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// llama.cpp with a tiny model that calls tools.
pub(crate) fn llama() -> Result<Server, String> {
    tiny(&[])
}

/// llama.cpp with a tiny model that makes one call, or two, or more, as chance will have it.
pub(crate) fn llama_with_parallel_calls() -> Result<Server, String> {
    tiny(&["parallel"])
}

fn tiny(how: &[&str]) -> Result<Server, String> {
    let python = program("llama", "python")?;
    let script = file("xtask/peers/tiny_tool_model.py");
    let port = free_port();
    let model = std::env::temp_dir().join(format!("toolwright-tiny-{}-{port}.gguf", std::process::id()));
    let made = Command::new(&python).arg(&script).arg("make").arg(&model).args(how).status();
    assert!(made.is_ok_and(|status| status.success()), "the tiny model could not be made");
    let mut process = Command::new(&python)
        .arg(&script)
        .arg("serve")
        .arg(&model)
        .arg(port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It prints its address once it listens.
    let mut line = String::new();
    let read = BufReader::new(process.stdout.take().unwrap()).read_line(&mut line);
    let _ = std::fs::remove_file(model);
    assert!(read.is_ok_and(|read| read > 0), "the server did not start");
    Ok(Server { process, port })
}

/// Bedrock's Converse in front of llama.cpp.
pub(crate) fn ministack(llama: &Server) -> Result<Server, String> {
    let port = free_port();
    let mut command = Command::new(program("ministack", "ministack")?);
    command
        .env("MINISTACK_BEDROCK_PROXY_URL", format!("http://127.0.0.1:{}", llama.port))
        .env("MINISTACK_BEDROCK_PROXY_TIMEOUT_SECONDS", "120")
        .env("BIND_HOST", "127.0.0.1")
        .env("GATEWAY_PORT", port.to_string());
    Ok(start(command, port))
}

/// Gemini's `generateContent` in front of llama.cpp, and the key to it.
pub(crate) fn litellm(llama: &Server) -> Result<(Server, String), String> {
    let program = program("litellm", "litellm")?;
    let port = free_port();
    let key = format!("sk-{:032x}{:032x}", std::process::id(), port);
    let config = std::env::temp_dir().join(format!("toolwright-litellm-{port}.yaml"));
    let text = format!(
        "model_list:\n  - model_name: local\n    litellm_params: {{model: openai/m, api_key: none, api_base: \
         'http://127.0.0.1:{}/v1'}}\n",
        llama.port
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(program);
    command
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--config"])
        .arg(&config)
        .env("LITELLM_MASTER_KEY", &key)
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    let server = start(command, port);
    std::fs::remove_file(config).unwrap();
    Ok((server, key))
}

/// Starts a server and waits until it listens.
fn start(mut command: Command, port: u16) -> Server {
    let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut server = Server { process, port };
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = server.process.try_wait().unwrap();
        assert!(ended.is_none(), "{command:?} ended: {ended:?}");
        assert!(started.elapsed() < Duration::from_secs(240), "{command:?} does not listen");
        std::thread::sleep(Duration::from_millis(200));
    }
    server
}
