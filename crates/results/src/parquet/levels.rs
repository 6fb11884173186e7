//! Parquet's hybrid of run lengths and packed bits: definition levels, and places in a dictionary.

use super::Broken;
use super::thrift::{Reader, varint};

/// Bits that a number below `count` needs.
pub(super) fn width(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// Appends numbers of `width` bits. Runs of eight and more are written once.
pub(super) fn encode(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let mut packed = 0;
    let mut at = 0;
    // Most numbers begin no run.
    while let Some(next) = values[at..].windows(8).position(|eight| eight[0] == eight[7]) {
        at += next;
        let run = values[at..].iter().take_while(|&&value| value == values[at]).count();
        // What is packed comes in groups of eight: a run fills the last group before it can begin.
        let fill = (at - packed).next_multiple_of(8) - (at - packed);
        if run >= fill + 8 {
            pack(out, &values[packed..at + fill], width);
            varint(out, ((run - fill) as u64) << 1);
            out.extend_from_slice(&values[at].to_le_bytes()[..width.div_ceil(8) as usize]);
            packed = at + run;
        }
        at += run;
    }
    pack(out, &values[packed..], width);
}

/// Appends one number of `width` bits so many times, as [`encode`] would.
pub(super) fn run(out: &mut Vec<u8>, value: u32, count: usize, width: u32) {
    if count < 8 {
        return encode(out, &[value; 8][..count], width);
    }
    varint(out, (count as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Values in groups of eight, the last filled up with zeros.
fn pack(out: &mut Vec<u8>, values: &[u32], width: u32) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint(out, (groups as u64) << 1 | 1);
    // A group has as many bytes as a number has bits.
    out.reserve(groups * width as usize);
    // Mostly a group is a word at most.
    if width <= 8 {
        let word = |group: &[u32]| {
            (0..).zip(group).fold(0, |bits, (place, &value)| bits | u64::from(value) << (place * width))
        };
        let (whole, rest) = values.as_chunks::<8>();
        for group in whole {
            out.extend_from_slice(&word(group).to_le_bytes()[..width as usize]);
        }
        if !rest.is_empty() {
            out.extend_from_slice(&word(rest).to_le_bytes()[..width as usize]);
        }
        return;
    }
    for group in values.chunks(8) {
        let (mut bits, mut held, mut left) = (0_u64, 0, width);
        for &value in group {
            bits |= u64::from(value) << held;
            held += width;
            if held >= 32 {
                out.extend_from_slice(&(bits as u32).to_le_bytes());
                (bits, held, left) = (bits >> 32, held - 32, left - 4);
            }
        }
        // The rest, and zeros where the group is not full.
        while left > 0 {
            out.push(bits as u8);
            (bits, left) = (bits >> 8, left - 1);
        }
    }
}

/// Reads `count` numbers of `width` bits.
pub(super) fn decode(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, Broken> {
    if width > 32 {
        return Err(Broken::Number);
    }
    let mut reader = Reader::new(bytes);
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let header = reader.varint()?;
        let left = count - values.len();
        if header & 1 == 0 {
            let mut value = [0; 4];
            let size = width.div_ceil(8) as usize;
            value[..size].copy_from_slice(reader.take(size)?);
            let run = usize::try_from(header >> 1).unwrap_or(usize::MAX);
            if run == 0 {
                return Err(Broken::Number);
            }
            values.extend(std::iter::repeat_n(u32::from_le_bytes(value), run.min(left)));
            continue;
        }
        let groups = usize::try_from(header >> 1).map_err(|_| Broken::Number)?;
        if groups == 0 {
            return Err(Broken::Number);
        }
        // The last group may be cut off after the values that are there.
        let whole = groups.checked_mul(width as usize).ok_or(Broken::Number)?;
        let packed = reader.take(whole.min(reader.rest.len()))?;
        let there = if width == 0 { left } else { packed.len() * 8 / width as usize };
        let wanted = left.min(groups.saturating_mul(8));
        if there < wanted {
            return Err(Broken::Short);
        }
        let (mut bits, mut held, mut next) = (0_u64, 0, packed.iter());
        for _ in 0..wanted {
            while held < width {
                bits |= u64::from(*next.next().ok_or(Broken::Short)?) << held;
                held += 8;
            }
            values.push((bits & ((1 << width) - 1)) as u32);
            bits >>= width;
            held -= width;
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_below_one_needs_no_bit() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width), [0, 0, 1, 2, 2, 3, 8, 9]);
    }

    #[test]
    fn a_long_run_takes_three_bytes() {
        let mut out = Vec::new();
        encode(&mut out, &[1; 1000], 1);
        assert_eq!(out, [0xd0, 0x0f, 1]);
    }

    proptest! {
        #[test]
        fn the_same_number_many_times_is_written_as_any_others(value in 0_u32..16, count in 0_usize..100) {
            let (mut plain, mut short) = (Vec::new(), Vec::new());
            encode(&mut plain, &vec![value; count], 4);
            run(&mut short, value, count, 4);
            prop_assert_eq!(plain, short);
        }

        #[test]
        fn what_is_written_is_read_again(
            runs in prop::collection::vec((0_u32..u32::MAX, 1_usize..40), 0..60),
            width in 0_u32..=32,
        ) {
            let mask = ((1_u64 << width) - 1) as u32;
            let values: Vec<u32> = runs.iter().flat_map(|&(value, run)| std::iter::repeat_n(value & mask, run)).collect();
            let mut out = Vec::new();
            encode(&mut out, &values, width);
            prop_assert_eq!(decode(&out, width, values.len()).unwrap(), values);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..50), width in 0_u32..40, count in 0_usize..500) {
            _ = decode(&bytes, width, count);
        }
    }
}
