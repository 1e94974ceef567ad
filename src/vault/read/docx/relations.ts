import { attribute, readXml } from "./xml.ts";

/**
 * A part's relations within the file: targets by the last segment of the relation's type (ECMA-376, part 2). The
 * first of several with the same type wins.
 */
export function readRelations(xml: Uint8Array): ReadonlyMap<string, string> {
  const targets = new Map<string, string>();
  readXml(xml, {
    open(_, attributes) {
      const kind = attribute(attributes, "Type")?.split("/").at(-1);
      const target = attribute(attributes, "Target");
      if (kind === undefined || target === undefined || targets.has(kind)) return;
      if (attribute(attributes, "TargetMode") !== "External") targets.set(kind, target);
    },
    close: () => {},
    text: () => {},
  });
  return targets;
}
