//! The page: files that are part of the program.

use std::path::Path;

/// The named files of `page/`, each with its content.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../page/", $name)))),*]
    };
}

/// Every file of the page. A new one is a line here.
const FILES: &[(&str, &[u8])] = files![
    "index.html",
    "style.css",
    "icon.svg",
    "api.js",
    "bench.js",
    "camera.js",
    "cards.js",
    "charts.js",
    "closer.js",
    "dom.js",
    "export.js",
    "fabric.js",
    "format.js",
    "frame.js",
    "heat.js",
    "jobdata.js",
    "jobs.js",
    "layout.js",
    "ledger.js",
    "main.js",
    "marks.js",
    "opening.js",
    "panels.js",
    "parts.js",
    "recording.js",
    "results.js",
    "shared.js",
    "side.js",
    "stage.js",
    "start.js",
    "stops.js",
    "stream.js",
    "svg.js",
    "toml.js",
    "tracks.js",
    "verdict.js",
    "waterfall.js",
    "why.js",
];

/// The media type of a file, by its name.
pub fn media_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "jsonl" | "toml" | "txt" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// A file of the page by its path, without the slash in front.
pub fn find(name: &str) -> Option<&'static [u8]> {
    let name = if name.is_empty() { "index.html" } else { name };
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
