import { writeFileSync } from 'node:fs';
import { CHART_GUIDE, chartGuideWithValues } from './chart-guide.ts';

// Writes the values of the Helm chart into docs/chart.md after a change to values.yaml; a test holds that the file is current.
writeFileSync(CHART_GUIDE, chartGuideWithValues());
