//! For any content of a CDF file, the reader returns a distribution that can be drawn from, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xoff_net::sizes::SizeDistribution;

fuzz_target!(|text: &str| {
    if let Ok(sizes) = SizeDistribution::from_cdf_text("fuzz.cdf", text) {
        assert!(sizes.mean().is_finite() && sizes.mean() >= 0.0);
        assert!(sizes.mean_packets(1_000).is_finite());
        if let SizeDistribution::Empirical(curve) = &sizes {
            for u in [0.0, 0.5, 0.999_999] {
                assert!((1..=sizes.largest()).contains(&curve.quantile(u)));
            }
        }
    }
});
