//! What is in a folder.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every file below a folder with its content, what runs cost left out, and when it was written.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            let mut bytes = fs::read(&path).unwrap_or_default();
            if path.ends_with("summary.json") {
                let mut summary: Value = serde_json::from_slice(&bytes).unwrap();
                assert!(summary["cost"].take().is_object());
                bytes = summary.to_string().into_bytes();
            }
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), (bytes, written));
        }
    }
    found
}
