/** The embedded files of swagger-ui-dist. Imported with `{ type: "file" }`, each is a path to read. */
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  const path: string;
  export = path;
}
declare module "swagger-ui-dist/swagger-ui.css" {
  const path: string;
  export = path;
}
