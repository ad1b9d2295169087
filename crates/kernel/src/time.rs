//! Simulated time: integer picoseconds.

/// A point in simulated time, or a span of it, in picoseconds. A `u64` holds 213 days. One byte takes 80 ps
/// at 100 Gbit/s and 8 ps at 1 Tbit/s, so every rate that the field uses is exact.
pub type Time = u64;

pub const MICROSECOND: Time = 1_000_000;
pub const MILLISECOND: Time = 1_000_000_000;
pub const SECOND: Time = 1_000_000_000_000;

/// The time that `bytes` take on a wire of `bits_per_second`, rounded up to whole picoseconds (a bit that has
/// begun is not over before its end). Panics if that is 0, or the result does not fit 64 bits.
pub fn serialisation(bytes: u64, bits_per_second: u64) -> Time {
    let ps = (u128::from(bytes) * 8 * u128::from(SECOND)).div_ceil(u128::from(bits_per_second));
    Time::try_from(ps).expect("serialisation time fits 64 bits of picoseconds")
}

/// The time that `bytes` take at `rate` bits per second, rounded down; `Time::MAX` if it is beyond.
pub fn wire_time(bytes: u64, rate: u64) -> Time {
    let ps = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(rate);
    Time::try_from(ps).unwrap_or(Time::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_rates_are_exact_and_others_round_up() {
        assert_eq!(serialisation(1, 100_000_000_000), 80);
        assert_eq!(serialisation(1052, 100_000_000_000), 84_160);
        assert_eq!(serialisation(1, 3_000_000_000_000), 3); // 2.67 ps
    }
}
