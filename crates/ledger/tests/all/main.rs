//! What papers compute, beside what runs show.

mod theory;
