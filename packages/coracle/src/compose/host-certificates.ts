/** The certificates of a host: what its server shows, and what it shows to others in its own name. */
import { firstServiceIp } from '@coracle/apimachinery/types/service-cidrs';
import type { Pki } from '../config/pki.ts';
import { LOOPBACK, type ServingAddress } from '../config/serving-address.ts';
import { VIRT_API_COMMON_NAME } from './node-connection.ts';

/** DNS names under which every API server is reached. */
export const SERVER_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
const YEAR_DAYS = 365;

export type HostCertificates = Awaited<ReturnType<typeof issueCertificates>>;

/** Those on disk while they fit and are fresh, else new ones. */
export async function issueCertificates(
  pki: Pki,
  { address, serviceCidr }: { readonly address: ServingAddress; readonly serviceCidr: string },
) {
  const [serving, admin, virtApi, frontProxy] = await Promise.all([
    pki.pair('server', {
      commonName: 'kube-apiserver',
      dnsNames: [...SERVER_NAMES, ...address.dnsNames],
      ipAddresses: [...new Set([LOOPBACK, ...address.ipAddresses, firstServiceIp(serviceCidr)])],
      usage: 'server',
      days: YEAR_DAYS,
    }),
    pki.pair('admin', {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usage: 'client',
      days: YEAR_DAYS,
    }),
    pki.pair('virt-api', { commonName: VIRT_API_COMMON_NAME, usage: 'client', days: YEAR_DAYS }),
    pki.frontProxy(),
  ]);
  return { serving, admin, virtApi, frontProxy };
}
