//! CDF files.

use crate::error::LineError;
use crate::text::shown;

/// Largest size that a file may name: beyond it, sizes are no longer exact in floating point.
const LARGEST: u64 = 1 << 53;

/// The knots of a file, shares from 0 to 1.
pub(super) fn parse(text: &str) -> Result<Vec<(u64, f64)>, LineError> {
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut last = 1;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let fail = |message: String| Err(LineError { line, message });
        let fields: Vec<&str> =
            content.split([',', ' ', '\t', '\r']).filter(|field| !field.is_empty()).collect();
        let (bytes, share) = match fields[..] {
            [] => continue,
            [bytes, share] => (bytes, share),
            _ => {
                return fail(format!(
                    "expected two numbers, bytes and cumulative percent, found {} in `{}`",
                    fields.len(),
                    shown(content.trim())
                ));
            }
        };
        let Ok(bytes) = bytes.parse::<u64>() else {
            return fail(format!("`{}` is not a whole number of bytes", shown(bytes)));
        };
        if bytes > LARGEST {
            return fail(format!("{bytes} bytes is above the maximum of {LARGEST}"));
        }
        let share = match share.parse::<f64>() {
            Ok(share) if (0.0..=100.0).contains(&share) => share,
            Ok(_) => {
                return fail(format!("the cumulative share `{}` is not between 0 and 100", shown(share)));
            }
            Err(_) => return fail(format!("`{}` is not a number", shown(share))),
        };
        if let Some(&(previous_bytes, previous)) = points.last() {
            if bytes < previous_bytes {
                return fail(format!("{bytes} bytes follow {previous_bytes} bytes: sizes must not decrease"));
            }
            if share < previous {
                return fail(format!(
                    "the share {share} follows {previous}: a cumulative share must not decrease"
                ));
            }
        }
        points.push((bytes, share));
        last = line;
    }
    let fail = |message: String| Err(LineError { line: last, message });
    let Some(&(bytes, end)) = points.last() else {
        return fail("the file has no points: write lines of bytes and cumulative percent".to_string());
    };
    if end != 100.0 && end != 1.0 {
        return fail(format!("the distribution ends at {end}: it must end at 100 (percent) or at 1"));
    }
    if bytes == 0 {
        return fail("every flow would have zero bytes".to_string());
    }
    for (_, share) in &mut points {
        *share /= end;
    }
    Ok(points)
}
