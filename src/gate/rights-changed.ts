/**
 * A call's rights have changed while it waited for its budget. Thrown out of the transaction of its intent, which is
 * rolled back. The call is then decided again.
 */
export class RightsChanged extends Error {
  override readonly name = "RightsChanged";
}
