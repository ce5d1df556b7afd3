/** The work on keys that the controller of peer certificates has done for it: control itself sees no ASN.1 library. */

import type { PeerKeyWork } from '@coracle/kube-controllers/certificates/peer-controller';
import type { Clock } from '@coracle/runtime/clock/clock';

/** The library is loaded when there is something to do, not before. */
export function createPeerKeyWork(clock: Clock): PeerKeyWork {
  const issuing = () => import('@coracle/apiserver/auth/certificate-authority');
  return {
    make: async ({ commonName, notBefore, notAfter }) =>
      (await issuing()).createAuthority(clock, commonName, { notBefore, notAfter }),
    fits: async (pair) => (await issuing()).isAuthorityPair(pair),
    sign: async (pair, request, options) => (await (await issuing()).openAuthority(pair, clock)).sign(request, options),
  };
}
