//! Simulation tests (temporary root).

mod tidy;
