//! A short form of a frequent statement. The tests of the boards use it too.

/// Binds a value, or skips the test on a machine without it.
macro_rules! need {
    ($pattern:pat = $value:expr) => {
        let Some($pattern) = $value else {
            return;
        };
    };
}
