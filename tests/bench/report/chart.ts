import { BarChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { CANDIDATE_TITLES, type CandidateName } from '../setup/candidate.ts';
import { type BenchResult, medianOf } from './bench-result.ts';

const SHOWN: readonly CandidateName[] = ['nginx-lua', 'tollgate', 'express'];
const COLOURS = ['#9aa5b1', '#2563eb', '#d97706'];

/** CPU per request of each case as bars, for the README. Less is better. */
export function chartOf({ cases }: BenchResult): string {
  use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 860, height: 90 + 62 * cases.length });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: { text: 'CPU per request in µs (less is better)', left: 12, top: 8, textStyle: { fontSize: 14 } },
    legend: { top: 34, left: 12, itemHeight: 10 },
    grid: { left: 250, right: 60, top: 66, bottom: 24 },
    xAxis: { type: 'value' },
    yAxis: { type: 'category', inverse: true, data: cases.map(({ benchCase }) => benchCase.title) },
    series: SHOWN.map((name, index) => ({
      type: 'bar',
      name: CANDIDATE_TITLES[name],
      color: COLOURS[index],
      label: { show: true, position: 'right', fontSize: 10 },
      data: cases.map((one) => rounded(medianOf(one, name, 'cpuUs'))),
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

function rounded(value: number): number {
  return Number.isFinite(value) ? Math.round(value) : 0;
}
