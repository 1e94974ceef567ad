/** The files of swagger-ui-dist that are embedded: imported with `{ type: "file" }`, each is a path to read. */
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  const path: string;
  export = path;
}
declare module "swagger-ui-dist/swagger-ui.css" {
  const path: string;
  export = path;
}
