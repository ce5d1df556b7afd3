/** A CertificateSigningRequest says who made it, in the server's words (certificates/strategy.go). */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { AdmissionPlugin } from './plugin.ts';

export const certificateRequestor: AdmissionPlugin = {
  name: 'CertificateRequestor',
  matches: (operation, info, subresource) =>
    operation === 'CREATE' &&
    info.group === 'certificates.k8s.io' &&
    info.resource === 'certificatesigningrequests' &&
    subresource === '',
  mutate({ object, user }) {
    const spec = object!['spec'];
    if (!isJsonObject(spec)) return;
    spec['username'] = user.username;
    spec['groups'] = [...user.groups];
    if (user.uid === undefined) delete spec['uid'];
    else spec['uid'] = user.uid;
    if (user.extra === undefined) delete spec['extra'];
    else spec['extra'] = Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]]));
  },
};
