//! Simulation tests (temporary root).

mod tidy;

mod storage_cases;
