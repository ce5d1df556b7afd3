/** CDI's roles for users, as far as its kinds are served here; they are joined to admin, edit and view. */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CDI_GROUP } from '../../kinds/kinds.ts';

const RESOURCES = `${CDI_GROUP} : datavolumes datasources dataimportcrons`;

/** Where tokens for uploads are asked for. */
export const UPLOAD_GROUP = 'upload.cdi.kubevirt.io';

const role = (name: string, ...rules: string[]) => ({
  kind: 'ClusterRole' as const,
  name: `${CDI_GROUP}:${name}`,
  labels: { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' },
  rules: policyRules(...rules),
});

/** `datavolumes/source` is the right to copy what lies in a namespace. */
export const CDI_ROLES = [
  ...['admin', 'edit'].map((name) =>
    role(
      name,
      `* : ${RESOURCES}`,
      `create : ${CDI_GROUP} : datavolumes/source`,
      `* : ${UPLOAD_GROUP} : uploadtokenrequests`,
    ),
  ),
  role('view', `get list watch : ${RESOURCES}`),
];
