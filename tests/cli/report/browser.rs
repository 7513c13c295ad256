//! A page in a real browser: it shows what strangers wrote and does nothing of it.
