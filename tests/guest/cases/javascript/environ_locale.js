console.log(Intl.DateTimeFormat().resolvedOptions().locale, (1234.5).toLocaleString())
