use super::*;
use proptest::prelude::*;

fn file(columns: &[(&str, &Column)], rows: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, columns, rows).unwrap();
    out
}

fn column() -> impl Strategy<Value = Vec<Option<u64>>> {
    // Few different values, or many; few gaps, or many.
    (1_u64..=u64::MAX, 0.0..=1.0_f64)
        .prop_flat_map(|(most, gaps)| prop::collection::vec(prop::option::weighted(1.0 - gaps, 0..most), 0..300))
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(counts in column(), texts in prop::collection::vec("[a-zä]{0,3}", 300), numbers in prop::collection::vec(prop::option::of(any::<f64>()), 300)) {
        let rows = counts.len();
        let small = Column::small(counts.iter().map(|value| value.unwrap_or(7) as u8));
        let (texts, numbers) = (Column::texts(texts[..rows].iter().map(String::as_str)), Column::numbers(numbers[..rows].iter().copied()));
        let counts = Column::maybe_counts(counts.into_iter());
        let columns = [("counts", &counts), ("small", &small), ("texts", &texts), ("numbers", &numbers)];
        let bytes = file(&columns, rows);
        let (read, length) = read(&bytes).unwrap();
        prop_assert_eq!(length, rows);
        for ((name, column), (read_name, read)) in columns.iter().zip(&read) {
            prop_assert_eq!(name, read_name);
            // NaN is written, too.
            prop_assert_eq!(format!("{:?}", column), format!("{read:?}"));
        }
        prop_assert_eq!(file(&columns, rows), bytes, "always the same bytes");
    }

    #[test]
    fn damage_is_read_or_refused(at in 0.0..1.0_f64, byte in any::<u8>(), cut in any::<bool>()) {
        let counts = Column::maybe_counts((0..200).map(|row| (row % 3 > 0).then_some(row % 7)));
        let texts = Column::texts((0..200).map(|row| ["a", "bb"][row % 2]));
        let mut bytes = file(&[("counts", &counts), ("texts", &texts)], 200);
        let at = (at * bytes.len() as f64) as usize;
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        _ = read(&bytes);
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
        let framed = [MAGIC, &bytes[..], MAGIC].concat();
        _ = read(&framed);
    }
}

#[test]
fn many_rows_come_in_pages_and_groups() {
    let rows = GROUP + PAGE + 3;
    let counts = Column::counts((0..rows as u64).map(|row| row * row));
    let texts = Column::texts((0..rows).map(|row| ["one", "two", "three"][row % 3]));
    let bytes = file(&[("counts", &counts), ("texts", &texts)], rows);
    let (read, length) = read(&bytes).unwrap();
    assert_eq!(length, rows);
    assert!(read[0].1 == counts && read[1].1 == texts);
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let (read, rows) = read(&file(&[("counts", &Column::counts([].into_iter()))], 0)).unwrap();
    assert_eq!((read.len(), read[0].0.as_str(), rows), (1, "counts", 0));
}

#[test]
fn what_repeats_takes_little_room() {
    let rows = 100_000;
    let times = Column::counts((0..rows).map(|row| row % 1000 * 1_000_000));
    let names = Column::texts((0..rows).map(|row| ["leaf0", "leaf1", "spine0"][row as usize / 40_000]));
    let size = file(&[("time_ps", &times), ("switch", &names)], rows as usize).len();
    assert!(size < 150_000, "{size} bytes");
}

#[test]
fn what_is_no_table_of_results_is_refused_with_a_reason() {
    assert_eq!(read(b"PAR1").unwrap_err(), Broken::Magic);
    assert_eq!(read(b"PAR1PAR1").unwrap_err(), Broken::Short);
    assert_eq!(read(b"PAR1\xff\0\0\0PAR1").unwrap_err(), Broken::Short);
    assert_eq!(Broken::Magic.to_string(), "it is not a Parquet file");
}
