//! How long a piece of work takes: the best of several rounds, because the noise of a machine only ever adds.

use std::time::{Duration, Instant};

/// Nanoseconds per call of `work`: rounds of at least 50 ms, the best of seven.
pub fn nanos(mut work: impl FnMut()) -> f64 {
    let mut batch = 1_u32;
    loop {
        let start = Instant::now();
        (0..batch).for_each(|_| work());
        if start.elapsed() > Duration::from_millis(50) || batch > 1 << 28 {
            break;
        }
        batch *= 2;
    }
    let round = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..batch).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(batch)
    };
    (0..7).map(|_| round(&mut work)).fold(f64::INFINITY, f64::min)
}

/// Like [`nanos`], for work that is awaited.
pub async fn nanos_async<F: Future<Output = ()>>(mut work: impl FnMut() -> F) -> f64 {
    let mut batch = 1_u32;
    let mut best = f64::INFINITY;
    let mut rounds = 0;
    while rounds < 7 {
        let start = Instant::now();
        for _ in 0..batch {
            work().await;
        }
        let took = start.elapsed();
        if took < Duration::from_millis(50) && batch < 1 << 28 {
            batch *= 2;
            continue;
        }
        best = best.min(took.as_secs_f64() * 1e9 / f64::from(batch));
        rounds += 1;
    }
    best
}

/// Like [`nanos_async`], for work that uses up what `prepare` makes, which is not timed.
pub async fn nanos_prepared<T, F: Future<Output = ()>>(
    mut prepare: impl FnMut() -> T,
    mut work: impl FnMut(T) -> F,
) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..100 {
        let prepared = prepare();
        let start = Instant::now();
        work(prepared).await;
        best = best.min(start.elapsed().as_secs_f64() * 1e9);
    }
    best
}

/// Prints the measurements as one JSON object, for `cargo xtask bench` to read.
#[expect(clippy::print_stdout, reason = "this is the program's output")]
pub fn report(rows: &[(&str, f64)]) {
    let object: serde_json::Map<String, serde_json::Value> =
        rows.iter().map(|(name, nanos)| ((*name).to_owned(), (*nanos).into())).collect();
    println!("{}", serde_json::Value::Object(object));
}
