/** A region or group of regions in front of Amazon's name for a model: `us.anthropic.claude-5`. */
const REGION = /^[a-z-]+\.(?=[^.]+\.)/i;
const ARN = /^arn:/i;

/**
 * The names of a model, `<provider>/<model>`: its own, and Amazon's name for the same model without the region of an
 * inference profile or the rest of an ARN. Regions are not listed here, because Amazon adds new ones: for all kinds
 * of providers, the first part of a name counts as a region if two dots follow it.
 */
export function amazonNames(model: string): readonly string[] {
  const own = model.indexOf("/") + 1;
  const provider = model.slice(0, own);
  const name = model.slice(own);
  const plain = ARN.test(name) ? name.slice(name.lastIndexOf("/") + 1) : name;
  return [...new Set([name, plain, plain.replace(REGION, "")])].map((each) => provider + each);
}

/** Whether two names may mean the same model at Amazon in different regions. */
export function isSameModel(one: string, other: string): boolean {
  const names = new Set(amazonNames(one));
  return amazonNames(other).some((name) => names.has(name));
}
