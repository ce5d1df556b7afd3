/** The range of cluster IPs as the command line gives it. */
import { formatIpRange, parseIpRange } from '@coracle/apimachinery/types/service-cidrs';

/** /8 to /29: as many addresses as a Service's can be looked for among, and as few as upstream takes. */
const MOST = 2n ** 24n;
const LEAST = 8n;

/** The network in its own words, `10.97.0.0/16`. Throws RangeError with one line that says what is wrong. */
export function serviceRange(text: string): string {
  const range = parseIpRange(text);
  if (range?.family !== 4) throw new RangeError(`takes one IPv4 range like 10.96.0.0/16, not ${JSON.stringify(text)}`);
  if (range.size < LEAST || range.size > MOST) throw new RangeError(`takes a range of /8 to /29, not ${text}`);
  return formatIpRange(range);
}
