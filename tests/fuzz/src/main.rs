//! Lists the targets; with a target and a folder, writes what a fuzzer begins with: inputs into the folder, and a dictionary
//! beside it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = arguments.as_slice() else {
        for target in fuzz::TARGETS {
            println!("{:14} {}", target.name, target.about);
        }
        return Ok(());
    };
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    for (number, seed) in (0..).zip(fuzz::seeds::seeds(target)) {
        fs::write(folder.join(format!("{number:03}")), seed)?;
    }
    let mut dictionary = String::new();
    for word in fuzz::seeds::words(target) {
        dictionary.push('"');
        for byte in word.bytes() {
            let plain = byte.is_ascii_graphic() && byte != b'"' && byte != b'\\' || byte == b' ';
            let written =
                if plain { write!(dictionary, "{}", byte as char) } else { write!(dictionary, "\\x{byte:02x}") };
            written.map_err(std::io::Error::other)?;
        }
        dictionary += "\"\n";
    }
    fs::write(folder.with_extension("dict"), dictionary)
}
