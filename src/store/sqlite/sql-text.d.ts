/** A file of SQL. Imported with `{ type: "text" }`. */
declare module "*.sql" {
  const sql: string;
  export = sql;
}
