/** Gives every PCI device a fixed place on the root bus, so that a guest sees the same addresses after each start. */

/**
 * Slot 0 is the host bridge, 1 is left to the display of old systems, 29 and 30 are what devices are plugged into
 * (`kubevirt/rules/machine/plug-room.ts`), 31 is the chipset of q35.
 */
const FIRST = 2;
const LAST = 28;

/** The place of the next of `count` devices. */
export type NextSlot = () => { readonly bus: string; readonly addr: string; readonly multifunction?: 'on' };

/** One device a slot while there are slots, else eight functions in each. Throws beyond 216 devices. */
export function createPciSlots(bus: string, count: number): NextSlot {
  const functions = count > LAST - FIRST + 1 ? 8 : 1;
  let given = 0;
  return () => {
    const slot = FIRST + Math.floor(given / functions);
    const fn = given++ % functions;
    if (slot > LAST) throw new Error('the machine has more PCI devices than slots');
    return { bus, addr: `0x${slot.toString(16)}.0x${fn}`, ...(functions > 1 && { multifunction: 'on' as const }) };
  };
}
