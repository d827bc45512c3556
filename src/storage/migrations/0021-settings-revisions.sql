-- The settings of the installation where the database is their home: each change is a row, the newest is in force.
create table settings_revisions (
  number integer not null primary key,
  at integer not null,
  actor text not null,
  why text not null,
  undoes integer,
  document text not null,
  changes text not null,
  secret_names text not null,
  secrets blob,
  key_id integer
) strict;
