//! Parquet's packed differences (`DELTA_BINARY_PACKED`): for columns of many different numbers of which each is near the one before, such as times.

use super::Broken;
use super::thrift::{Reader, varint};

/// Differences of a block, which have one least difference.
const BLOCK: usize = 128;
/// Differences of a part of a block, which have one width.
const PART: usize = 32;
const PARTS: usize = BLOCK / PART;

fn zigzag(value: u64) -> u64 {
    value << 1 ^ ((value as i64) >> 63) as u64
}

fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

/// Appends numbers. Differences wrap.
pub(super) fn encode(out: &mut Vec<u8>, values: &[u64]) {
    varint(out, BLOCK as u64);
    varint(out, PARTS as u64);
    varint(out, values.len() as u64);
    varint(out, zigzag(values.first().copied().unwrap_or(0)));
    let mut deltas = [0; BLOCK];
    let mut last = values.first().copied().unwrap_or(0);
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut least = i64::MAX;
        for (delta, &value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(last);
            least = least.min(*delta as i64);
            last = value;
        }
        varint(out, zigzag(least as u64));
        let widths = out.len();
        out.resize(widths + PARTS, 0);
        for (part, own) in deltas[..block.len()].chunks_mut(PART).enumerate() {
            let mut all = 0;
            own.iter_mut().for_each(|delta| {
                *delta = delta.wrapping_sub(least as u64);
                all |= *delta;
            });
            let width = u64::BITS - all.leading_zeros();
            out[widths + part] = width as u8;
            pack(out, own, width);
        }
    }
}

/// Numbers of so many bits, filled up with zeros to a whole part.
fn pack(out: &mut Vec<u8>, values: &[u64], width: u32) {
    let end = out.len() + PART / 8 * width as usize;
    let (mut bits, mut held) = (0_u128, 0);
    for &value in values {
        bits |= u128::from(value) << held;
        held += width;
        if held >= 64 {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            (bits, held) = (bits >> 64, held - 64);
        }
    }
    out.extend_from_slice(&(bits as u64).to_le_bytes()[..held.div_ceil(8) as usize]);
    out.resize(end, 0);
}

/// Reads `count` numbers.
pub(super) fn decode(bytes: &[u8], count: usize) -> Result<Vec<u64>, Broken> {
    let mut reader = Reader::new(bytes);
    let mut size = || reader.varint().and_then(|size| usize::try_from(size).map_err(|_| Broken::Number));
    let (block, parts, total) = (size()?, size()?, size()?);
    if total != count || parts == 0 || block == 0 || block > 1 << 20 || !block.is_multiple_of(parts) {
        return Err(Broken::Number);
    }
    let part = block / parts;
    if !part.is_multiple_of(8) {
        return Err(Broken::Number);
    }
    let mut last = unzigzag(reader.varint()?);
    let mut values = Vec::with_capacity(count);
    if count > 0 {
        values.push(last);
    }
    while values.len() < count {
        let least = unzigzag(reader.varint()?);
        for &width in reader.take(parts)? {
            if values.len() >= count {
                break;
            }
            let width = u32::from(width);
            if width > u64::BITS {
                return Err(Broken::Number);
            }
            let mut packed = reader.take(part / 8 * width as usize)?.iter();
            let (mut bits, mut held) = (0_u128, 0);
            for _ in 0..part.min(count - values.len()) {
                while held < width {
                    bits |= u128::from(*packed.next().ok_or(Broken::Short)?) << held;
                    held += 8;
                }
                let delta = bits & ((1 << width) - 1);
                (bits, held) = (bits >> width, held - width);
                last = last.wrapping_add(least).wrapping_add(delta as u64);
                values.push(last);
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_count_of_rows_takes_a_few_bytes() {
        let mut out = Vec::new();
        encode(&mut out, &(0..1000).collect::<Vec<u64>>());
        // Of each block the least difference, which is 1, and four widths of 0.
        assert_eq!(out.len(), 6 + 8 * 5);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            values in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..300),
                prop::collection::vec(1000_u64..9000, 0..300),
                prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63)], 0..300),
            ],
        ) {
            let mut out = Vec::new();
            encode(&mut out, &values);
            prop_assert_eq!(decode(&out, values.len()), Ok(values));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..500) {
            _ = decode(&bytes, count);
        }
    }
}
