//! The command line, from outside.

mod claims;
mod cli;
mod compare;
mod desk;
mod pages;
mod progress;
mod report;
mod studio;
mod sweep;
mod traffic;
