import { LocalMonthTotals } from "../../src/gate/month-totals.ts";
import { LocalReservations } from "../../src/limits/local-reservations.ts";

/** What budgets count in memory when one process uses the store. */
export const countsInMemory = () => ({
  reservations: new LocalReservations(),
  months: new LocalMonthTotals(),
});
