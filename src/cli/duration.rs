//! Spans of time on the command line.

use std::time::Duration;

/// The longest that is taken: a year. Everything here ends in deadlines, and a deadline that no
/// clock reaches is a typing error.
const MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads a span such as `10s`, `500ms` or `1m 30s`; a bare number is refused, because its unit
/// would be a guess.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number with its unit, such as 10s or 500ms"))?;
    if span > MAX {
        return Err(format!("{text} is more than {}", humantime::format_duration(MAX)));
    }
    Ok(span)
}

/// Reads a span that is not zero.
pub(super) fn parse_positive(text: &str) -> Result<Duration, String> {
    let span = parse(text)?;
    if span.is_zero() { Err("must be more than nothing".to_owned()) } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units are kept apart, and what has none, is nothing, or is absurd is refused.
    #[test]
    fn spans_have_units_and_limits() {
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["10", "", "-1s", "1e3s", "s", "400days", "99999999999999999999s"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        assert!(parse_positive("0s").is_err());
    }
}
