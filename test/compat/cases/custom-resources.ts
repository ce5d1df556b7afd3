import type { Group } from '../steps.ts';

const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [tables]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: When and what.
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: When it runs.}
              image: {type: string}
              replicas: {type: integer, minimum: 1, maximum: 10, default: 1}
            x-kubernetes-validations:
            - {rule: "!has(self.image) || self.image != 'bad'", message: "that image is bad"}
          status:
            type: object
            properties:
              replicas: {type: integer}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
`;

const CRON_TAB = `apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: my}
spec: {cronSpec: "* * * * */5"}
`;

const CRD = 'customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com';

export const CUSTOM_RESOURCES: readonly Group[] = [
  {
    // S-150
    name: 'custom resources',
    steps: [
      { run: 'apply -f -', input: DEFINITION, out: `${CRD} created` },
      // kubectl wait ends with an error at a status that has no conditions yet.
      {
        run: "get crd/crontabs.stable.example.com --watch -o jsonpath='{.status.conditions}'",
        until: /"Established"/,
        out: '<lines>',
      },
      {
        run: 'wait crd/crontabs.stable.example.com --for=condition=Established --timeout=60s',
        out: `${CRD} condition met`,
      },
      { run: 'explain crontab.spec.cronSpec', out: '<lines>FIELD: cronSpec <string>\n<lines>When it runs.<lines>' },
      { run: 'apply -f -', input: CRON_TAB, out: 'crontab.stable.example.com/my created' },
      { run: 'apply -f -', input: CRON_TAB, out: 'crontab.stable.example.com/my unchanged' },
      { run: 'get ct', out: 'NAME  SPEC  REPLICAS  AGE\nmy  * * * * */5  1  <age>' },
      { run: 'get tables', out: 'NAME  SPEC  REPLICAS  AGE\nmy  * * * * */5  1  <age>' },
      { run: 'scale ct/my --replicas=3', out: 'crontab.stable.example.com/my scaled' },
      { run: 'patch ct my --type=merge -p \'{"spec":{"image":"i"}}\'', out: 'crontab.stable.example.com/my patched' },
      { run: "get ct my -o jsonpath='{.spec.replicas} {.spec.image}'", out: '3 i' },
      {
        run: 'patch ct my --type=merge -p \'{"spec":{"replicas":20}}\'',
        err: 'The CronTab "my" is invalid: spec.replicas: Invalid value: 20: spec.replicas in body should be less than or equal to 10',
        code: 1,
      },
      {
        run: 'patch ct my --type=merge -p \'{"spec":{"image":"bad"}}\'',
        err: 'The CronTab "my" is invalid: spec: Invalid value: that image is bad',
        code: 1,
      },
      {
        run: 'apply -f -',
        input: CRON_TAB.replace('cronSpec', 'cronSpek'),
        err: '<...>strict decoding error: unknown field "spec.cronSpek"',
        code: 1,
      },
      { run: 'apply --server-side -f -', input: CRON_TAB, out: 'crontab.stable.example.com/my serverside-applied' },
      { run: 'label ct my a=b', full: true, out: 'crontab.stable.example.com/my labeled' },
      { run: 'get ct -l a=b -o name', full: true, out: 'crontab.stable.example.com/my' },
      {
        run: 'api-resources --api-group=stable.example.com',
        out: 'NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND\ncrontabs  ct  stable.example.com/v1  true  CronTab',
      },
      { run: 'delete ct my', out: 'crontab.stable.example.com "my" deleted<from>' },
      { run: 'apply -f -', input: CRON_TAB, out: 'crontab.stable.example.com/my created' },
      {
        run: 'delete crd crontabs.stable.example.com --timeout=60s',
        out: 'customresourcedefinition.apiextensions.k8s.io "crontabs.stable.example.com" deleted<from>',
        err: '<lines>',
      },
      { run: 'get crontabs.stable.example.com', full: true, err: '<lines>', code: 1 },
      {
        run: 'delete crd virtualmachines.kubevirt.io',
        err: '<lines>Error from server (Forbidden): customresourcedefinitions.apiextensions.k8s.io "virtualmachines.kubevirt.io" is forbidden: the kind is built into this server and cannot be taken away',
        code: 1,
      },
    ],
  },
];
